package migration

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/legacyfixture"
	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

func TestMalformedFiles(t *testing.T) {
	cases, err := legacyfixture.MalformedFiles("testdata/malformed")
	must(t, err)
	for name, c := range cases {
		content := c.Content
		if content == nil {
			continue // built by TestOddFiles
		}
		// What is stricter than Kafka Streams stands in docs/divergence.md.
		t.Run(name, func(t *testing.T) {
			f, err := offsetfile.Parse(bytes.NewReader(content))
			if (err != nil) != (c.Entries == nil) {
				t.Fatalf("%v; the manifest says: %s", err, c.Migrator)
			}
			got := map[string]int64{}
			for _, l := range f.Entries {
				got[l.TopicPartition()] = l.Offset
			}
			if diff := cmp.Diff(c.Entries, got); c.Entries != nil && diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			checkQuarantine(t, content, c)
		})
	}
}

// checkQuarantine runs the whole way with the file as .checkpoint and as .position.
func checkQuarantine(t *testing.T, content []byte, c legacyfixture.Malformed) {
	t.Helper()
	for _, file := range []string{checkpointName, "kv" + positionSuffix} {
		dir := taskWith(t, file, content)
		path := filepath.Join(dir, "app", "0_0", file)
		r, err := Apply(t.Context(), dir, Options{App: "app", Logger: quiet})
		must(t, err)
		f := fileOf(t, r, path)
		bad := c.Entries == nil
		if (f.Status == StatusQuarantined) != bad || r.OK == bad || bad && f.Reason == "" {
			t.Errorf("%+v, ok %v; the manifest says: %s", f, r.OK, c.Migrator)
		}
		kept, err := filepath.Glob(path + ".*")
		must(t, err)
		if len(kept) != 1 || strings.Contains(kept[0], quarantineMarker) != bad {
			t.Fatalf("kept as %q", kept)
		}
		if got, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the kept file is %q, %v", got, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
		r, err = Apply(t.Context(), dir, Options{App: "app", Logger: quiet})
		if err != nil || !r.OK {
			t.Errorf("the second run: %v, %+v", err, r)
		}
	}
}

// quiet takes the warnings that a test provokes.
var quiet = slog.New(slog.DiscardHandler)

func taskWith(t *testing.T, file string, content []byte) (stateDir string) {
	t.Helper()
	stateDir = t.TempDir()
	must(t, os.MkdirAll(filepath.Join(stateDir, "app", "0_0"), 0o700))
	must(t, os.WriteFile(filepath.Join(stateDir, "app", "0_0", file), content, 0o600))
	return stateDir
}

func fileOf(t *testing.T, r *Report, path string) File {
	t.Helper()
	for _, task := range r.Tasks {
		for _, f := range task.Files {
			if f.Path == path {
				return f
			}
		}
	}
	t.Fatalf("no file %s in %+v", path, r)
	return File{}
}

func entryOf(t *testing.T, r *Report, task, topic string, partition int32) Entry {
	t.Helper()
	for _, x := range r.Tasks {
		for _, e := range x.Entries {
			if x.Task == task && e.Topic == topic && e.Partition == partition {
				return e
			}
		}
	}
	t.Fatalf("no entry %s of task %s in %+v", shownPartition(topic, partition), task, r)
	return Entry{}
}

func TestWhatEntriesMean(t *testing.T) {
	const last = math.MaxInt64
	content := fmt.Sprintf("0\n7\napp-a-changelog 0 41\napp-b-changelog 0 -4\napp-c-changelog 0 -1\napp-d-changelog 0 %d\n"+
		"app-e-changelog 7 41\nforeign 0 5\napp-f-changelog 0 0\n", last)
	dir := taskWith(t, checkpointName, []byte(content))
	r, err := Plan(t.Context(), dir, Options{App: "app", Guarantee: AtLeastOnce})
	must(t, err)
	type meaning struct {
		State  State
		Next   string
		Store  string
		Action Action
	}
	for _, want := range []struct {
		topic     string
		partition int32
		meaning
	}{
		{"app-a-changelog", 0, meaning{StateAt, "42", "a", ActionRestore}},
		{"app-b-changelog", 0, meaning{StateUnknown, "none", "b", ActionRestore}},
		{"app-c-changelog", 0, meaning{StateAbsent, "none", "c", ActionSkip}},
		{"app-d-changelog", 0, meaning{StateAbsent, "none", "d", ActionRestore}},
		{"app-e-changelog", 7, meaning{StateAt, "42", "", ActionNone}},
		{"foreign", 0, meaning{StateAt, "6", "", ActionNone}},
		{"app-f-changelog", 0, meaning{StateAt, "1", "f", ActionRestore}},
	} {
		e := entryOf(t, r, "0_0", want.topic, want.partition)
		if got := (meaning{e.State, number(e.NextOffset), e.Store, e.Action}); got != want.meaning || e.Reason == "" {
			t.Errorf("%s: %+v %q, want %+v", shownPartition(want.topic, want.partition), got, e.Reason, want.meaning)
		}
	}
	if f := r.Tasks[0].Files[0]; f.Status != StatusOK || !strings.Contains(f.Reason, "app-c-changelog-0 has the offset -1") {
		t.Errorf("file %+v", f)
	}
}

// The shapes that are no plain text file.
func TestOddFiles(t *testing.T) {
	good := []byte("0\n1\napp-kv-changelog 0 41\n")
	task := func(t *testing.T) (dir, path string) {
		dir = t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "app", "0_0"), 0o700))
		return dir, filepath.Join(dir, "app", "0_0", checkpointName)
	}
	apply := func(t *testing.T, dir, path string, ok bool, status FileStatus) File {
		t.Helper()
		r, err := Apply(t.Context(), dir, Options{App: "app", Logger: quiet})
		must(t, err)
		f := fileOf(t, r, path)
		if r.OK != ok || f.Status != status {
			t.Errorf("ok %v, %+v", r.OK, f)
		}
		return f
	}
	t.Run("missing", func(t *testing.T) {
		dir, path := task(t)
		if f := apply(t, dir, path, true, StatusAbsent); f.Reason != "" {
			t.Error(f)
		}
	})
	t.Run("directory", func(t *testing.T) {
		dir, path := task(t)
		must(t, os.Mkdir(path, 0o700))
		apply(t, dir, path, false, StatusAbsent)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
	t.Run("symlink", func(t *testing.T) {
		dir, path := task(t)
		target := filepath.Join(dir, "target")
		must(t, os.WriteFile(target, good, 0o600))
		must(t, os.Symlink(target, path))
		apply(t, dir, path, true, StatusOK)
		info, err := os.Lstat(path + migratedSuffix)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link was to be renamed: %v, %v", info, err)
		}
		if got, err := os.ReadFile(target); err != nil || !bytes.Equal(got, good) {
			t.Errorf("target: %q, %v", got, err)
		}
	})
	t.Run("dangling symlink", func(t *testing.T) {
		dir, path := task(t)
		must(t, os.Symlink(filepath.Join(dir, "nothing"), path))
		if f := apply(t, dir, path, true, StatusAbsent); f.Reason == "" {
			t.Error("not reported")
		}
	})
	t.Run("temporary file alone", func(t *testing.T) {
		dir, path := task(t)
		must(t, os.WriteFile(path+temporarySuffix, good, 0o600))
		apply(t, dir, path, true, StatusAbsent)
	})
	t.Run("temporary file beside", func(t *testing.T) {
		dir, path := task(t)
		must(t, os.WriteFile(path, good, 0o600))
		must(t, os.WriteFile(path+temporarySuffix, []byte("0\n1\napp-kv"), 0o600))
		apply(t, dir, path, true, StatusOK)
		if exists(t, path+temporarySuffix) {
			t.Error("the rest of a write that was cut off is still there")
		}
	})
	t.Run("a line of 8 MiB", func(t *testing.T) {
		dir, path := task(t)
		must(t, os.WriteFile(path, []byte("0\n1\n"+strings.Repeat("x", 8<<20)+" 0 41\n"), 0o600))
		apply(t, dir, path, true, StatusOK)
	})
	t.Run("not an application", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, nil, 0o600))
		for _, dir := range []string{file, filepath.Join(file, "below"), t.TempDir(), "nowhere"} {
			if _, err := Plan(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: %v", dir, err)
			}
		}
	})
}

// The whole way, with topics that no name explains beside a store without a line: each line is
// looked at once.
func TestManyStrangers(t *testing.T) {
	const n = 200000
	var b bytes.Buffer
	fmt.Fprintf(&b, "0\n%d\n", n)
	for i := range n {
		fmt.Fprintf(&b, "stranger-%d 0 %d\n", i, i)
	}
	dir := taskWith(t, checkpointName, b.Bytes())
	must(t, os.MkdirAll(filepath.Join(dir, "app", "0_0", "rocksdb", "kv"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "app", "0_0", "kv"+positionSuffix), []byte("0\n1\nstranger-77 0 80\n"), 0o600))
	begun := time.Now()
	r, err := Plan(t.Context(), dir, Options{Guarantee: AtLeastOnce})
	must(t, err)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := len(r.Tasks[0].Entries); got != n {
		t.Errorf("%d entries", got)
	}
	if e := entryOf(t, r, "0_0", "stranger-77", 0); e.Store != "kv" || *e.NextOffset != 78 {
		t.Errorf("%+v", e)
	}
}

func TestProcessFile(t *testing.T) {
	for content, status := range map[string]FileStatus{
		`{"processId":"9e5b1f06-0d1e-4c3a-8a52-0d6a3f0f2b11"}`:                               StatusOK,
		`{"processId":"9e5b1f06-0d1e-4c3a-8a52-0d6a3f0f2b11","later":[1,{"x":null}]}` + "\n": StatusOK,
		``:                      StatusQuarantined,
		`{"processId":"9e5b1f0`: StatusQuarantined,
		`{"processId":7}`:       StatusQuarantined,
		`{"processId":null}`:    StatusQuarantined,
		`{}`:                    StatusQuarantined,
		`[]`:                    StatusQuarantined,
		"\x00\x00\x00":          StatusQuarantined,
	} {
		dir := taskWith(t, checkpointName, []byte("0\n0\n"))
		path := filepath.Join(dir, "app", processName)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		r, err := Plan(t.Context(), dir, Options{})
		must(t, err)
		if f := fileOf(t, r, path); f.Status != status || r.OK != (status == StatusOK) {
			t.Errorf("%q: %+v", content, f)
		}
	}
}

func TestDirectoryNames(t *testing.T) {
	dir := t.TempDir()
	tasks := []string{"0_1", "10_0", "2_0", "__top__/0_1", "__a__b__/3_4", "global", "__top__/global"}
	foreign := []string{"00_1", "0_01", "-1_0", "1_", "_1", "1_2_3", "99999999999_0", "____", "+1_0", "lost+found"}
	for _, name := range slices.Concat(tasks, foreign) {
		must(t, os.MkdirAll(filepath.Join(dir, "app", name), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "app", name, checkpointName), []byte("0\n0\n"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "app", "5_5"), nil, 0o600))
	r, err := Apply(t.Context(), dir, Options{})
	must(t, err)
	var got []string
	for _, task := range r.Tasks {
		got = append(got, task.Task)
	}
	want := []string{"0_1", "2_0", "10_0", "global", "a__b__3_4", "top__0_1", "top__global"}
	if diff := cmp.Diff(want, got); diff != "" || !r.OK {
		t.Errorf("tasks (-want +got):\n%s%v", diff, r.Notes)
	}
	for _, name := range foreign {
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, filepath.Join(dir, "app", name)+":") }) {
			t.Errorf("%s is not listed: %q", name, r.Notes)
		}
		if _, err := os.Stat(filepath.Join(dir, "app", name, checkpointName)); err != nil {
			t.Errorf("%s was not left alone: %v", name, err)
		}
	}
}

// Store names that look like something else.
func TestStoreNames(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	var lines strings.Builder
	names := []string{"position", "status", ".checkpoint_x", "global", "rocksdb", "a.position", "changelog", "a-changelog", "0_0"}
	for i, name := range names {
		must(t, os.MkdirAll(filepath.Join(task, "rocksdb", name), 0o700))
		must(t, os.WriteFile(filepath.Join(task, name+positionSuffix), []byte("0\n1\nin 0 5\n"), 0o600))
		fmt.Fprintf(&lines, "app-%s-changelog 0 %d\n", name, i)
	}
	// A window store called w, and one called rocksdb.
	for _, segment := range []string{"w/w.1795966500000", "w/w-202611291200", "rocksdb/rocksdb.1795966500000"} {
		must(t, os.MkdirAll(filepath.Join(task, segment), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(task, checkpointName), []byte(fmt.Sprintf("0\n%d\n%s", len(names), lines.String())), 0o600))
	r, err := Plan(t.Context(), dir, Options{Guarantee: AtLeastOnce})
	must(t, err)
	for i, name := range names {
		if e := entryOf(t, r, "0_0", "app-"+name+"-changelog", 0); e.Store != name || *e.NextOffset != int64(i)+1 || e.State != StateAt {
			t.Errorf("%s: %+v", name, e)
		}
		if !slices.ContainsFunc(r.Tasks[0].Positions, func(p Position) bool { return p.Store == name && p.NextOffset == 6 }) {
			t.Errorf("%s has no position", name)
		}
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], `store "w" has no entry`) {
		t.Errorf("notes %q", r.Notes)
	}
}
