package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/statestore"
)

var update = flag.Bool("update", false, "write the golden files anew")

// changing is what differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`20\d\d\d\d\d\dT\d\d\d\d\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\d+(\.\d+)? (B|KiB|MiB)\b`), "SIZE"},
	{regexp.MustCompile(`"bytes": \d+`), `"bytes": SIZE`},
	{regexp.MustCompile(`"tables": \d+`), `"tables": N`},
	{regexp.MustCompile(`\d+ table files?`), "N table files"},
	{regexp.MustCompile(`process \d+ on \S+`), "process N on HOST"},
	{regexp.MustCompile(`\d{6}\.sst`), "N.sst"},
	{regexp.MustCompile(`\bMANIFEST-\d{6}`), "MANIFEST-N"},
}

// golden compares output with a file of testdata.
func golden(t *testing.T, name, dir, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, dir, "DIR")
	for _, c := range changing {
		got = c.pattern.ReplaceAllString(got, c.by)
	}
	if strings.HasSuffix(name, ".txt") { // the width of columns
		got = regexp.MustCompile(`(\S)  +`).ReplaceAllString(got, "$1  ")
	}
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want runs the program and checks code and, unless they are "*", both outputs for a part.
func want(t *testing.T, code int, stdout, stderr string, args ...string) (out string) {
	t.Helper()
	got, out, errs := tidemark(args...)
	if got != code {
		t.Errorf("tidemark %v: exit code %d, want %d\n%s%s", args, got, code, out, errs)
	}
	for _, x := range []struct{ name, part, text string }{{"output", stdout, out}, {"error output", stderr, errs}} {
		if x.part == "" && x.text != "" || !strings.Contains(x.text, x.part) {
			t.Errorf("tidemark %v: %s %q, want %q in it", args, x.name, x.text, x.part)
		}
	}
	return out
}

var stores = []statestore.Spec{
	{Name: "counts", Kind: statestore.KindKeyValue, Changelog: "app-counts-changelog", ChangelogID: [16]byte{0xab, 1}, KeySerde: "string", ValueSerde: "int64", SchemaVersion: 2},
	{Name: "latest", Kind: statestore.KindTimestampedKeyValue, Changelog: "app-latest-changelog"},
	{Name: "windows", Kind: statestore.KindTimestampedWindow, Changelog: "app-windows-changelog", Retention: time.Hour, WindowSize: time.Minute},
	{Name: "joined", Kind: statestore.KindWindow, Retention: time.Hour, WindowSize: time.Minute, RetainDuplicates: true},
	{Name: "sessions", Kind: statestore.KindSession, Changelog: "app-sessions-changelog", Retention: time.Hour},
	{Name: "prices", Kind: statestore.KindVersioned, Changelog: "app-prices-changelog", Retention: time.Hour},
}

func openTask(t *testing.T, dir string) *statestore.TaskStore {
	t.Helper()
	s, err := statestore.Open(dir, statestore.Options{Logger: quiet()})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.Register(stores...))
	return s
}

// fill puts something into each store and commits.
func fill(t *testing.T, s *statestore.TaskStore) {
	t.Helper()
	counts, err := s.KeyValue("counts")
	must(t, err)
	for _, key := range []string{"", "a", "b", "ü", "hex:00", "\x00", "\x00f", "\xff\xff"} {
		must(t, counts.Put([]byte(key), []byte{0, 0, 0, byte(len(key))}, 1))
	}
	latest, err := s.KeyValue("latest")
	must(t, err)
	must(t, latest.Put([]byte("user-1"), []byte(`{"name":"<Ann>"}`), 1_600_000_000_000))
	must(t, latest.Put([]byte("user-2"), []byte{}, 1_600_000_000_001))
	windows, err := s.Window("windows")
	must(t, err)
	must(t, windows.Put([]byte("a"), []byte("first"), 60_000, 61_000))
	must(t, windows.Put([]byte("b"), []byte("second"), 120_000, 121_000))
	joined, err := s.Window("joined")
	must(t, err)
	must(t, joined.Put([]byte("a"), []byte("left"), 60_000, 60_000))
	must(t, joined.Put([]byte("a"), []byte("right"), 60_000, 60_000))
	sessions, err := s.Session("sessions")
	must(t, err)
	must(t, sessions.Put([]byte("a"), []byte("visit"), 1000, 5000, 5000))
	prices, err := s.Versioned("prices")
	must(t, err)
	for i, price := range []string{"10", "12"} {
		_, err = prices.Put([]byte("apple"), []byte(price), int64(1000*(i+1)))
		must(t, err)
	}
	_, err = prices.Put([]byte("pear"), nil, 1500)
	must(t, err)
	x, err := s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 3, Number: 7}, StreamTime: 1_600_000_000_001,
		Positions: []statestore.Position{{Topic: "in", Partition: 0, Next: 42}, {Topic: "more", Partition: 0, Next: 0}}})
	must(t, err)
	must(t, s.Commit(x, map[string]statestore.Offset{"counts": statestore.At(17), "latest": statestore.CleanUnknown()}))
	s.Release(x)
}

// stateDir makes a state directory with an application of several tasks.
func stateDir(t *testing.T) (root string, app *statedir.Dir) {
	t.Helper()
	root = t.TempDir()
	app, err := statedir.Open(root, "app")
	must(t, err)
	s := openTask(t, app.TaskDir("0_0"))
	fill(t, s)
	must(t, s.StampOwner(statestore.Owner{ProcessID: "process-a", Last: time.UnixMilli(1_700_000_000_000)}))
	must(t, s.RecordImport(statestore.Import{Store: "sessions", Source: ".checkpoint", Time: time.UnixMilli(1_700_000_000_000)}, statestore.At(5), nil))
	must(t, s.Close())
	must(t, openTask(t, app.TaskDir("0_1")).Close()) // nothing was ever committed
	must(t, os.MkdirAll(filepath.Join(app.TaskDir("1_0"), "rocksdb", "counts"), 0o700))
	must(t, os.WriteFile(filepath.Join(app.TaskDir("1_0"), ".checkpoint"), []byte("0\n0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(app.Path(), "notes.txt"), nil, 0o600))
	must(t, app.Close())
	return root, app
}

func TestInspect(t *testing.T) {
	root, app := stateDir(t)
	golden(t, "inspect.txt", root, want(t, exitOK, "application app", "", "inspect", root))
	golden(t, "inspect.json", root, want(t, exitOK, "{", "", "inspect", "--json", root))
	for _, dir := range []string{app.Path(), app.TaskDir("0_0")} {
		want(t, exitOK, "counts", "", "inspect", dir)
	}
	want(t, exitOK, "no task store", "", "inspect", app.TaskDir("1_0"))
	want(t, exitOK, "in the log", "", "inspect", crashed(t))
}

// crashed gives a task store with a log to replay: a copy of one that is open.
func crashed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "0_0")
	s := openTask(t, dir)
	fill(t, s)
	must(t, s.Sync())
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func TestCommandsOnATaskInUse(t *testing.T) {
	root, app := stateDir(t)
	held, err := statedir.Open(root, "app")
	must(t, err)
	defer func() { must(t, held.Close()) }()
	s := openTask(t, app.TaskDir("0_0"))
	const hint = "in use"
	out := want(t, exitOK, hint, "", "inspect", root)
	golden(t, "inspect-in-use.txt", root, out)
	golden(t, "verify-in-use.txt", root, want(t, exitFailed, hint, "", "verify", root))
	want(t, exitFailed, "", "take a snapshot", "dump", root, "0_0", "counts")
	to := filepath.Join(t.TempDir(), "copy")
	must(t, s.Sync())
	want(t, exitOK, "0_0", "", "snapshot", root, to)
	want(t, exitOK, "0 problems, 0 not verified", "", "verify", to)
	golden(t, "dump-counts.txt", root, want(t, exitOK, "user", "", "dump", filepath.Join(to, "app"), "0_0", "latest")+
		want(t, exitOK, "a", "", "dump", to, "0_0", "counts"))
	want(t, exitProblems, "", "exists already", "snapshot", root, to)
	must(t, s.Close())
}

func TestDump(t *testing.T) {
	root, app := stateDir(t)
	var text, lines strings.Builder
	for _, s := range stores {
		fmt.Fprintf(&text, "%s\n%s\n", s.Name, want(t, exitOK, "\t", "", "dump", root, "0_0", s.Name))
		out := want(t, exitOK, "{", "", "dump", "--json", root, "0_0", s.Name)
		fmt.Fprintf(&lines, "%s\n%s\n", s.Name, out)
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	}
	golden(t, "dump.txt", root, text.String())
	golden(t, "dump.jsonl", root, lines.String())
	keys := func(args ...string) (keys []string) {
		t.Helper()
		_, out, _ := tidemark(append([]string{"dump", root, "0_0"}, args...)...)
		for line := range strings.Lines(out) {
			key, _, _ := strings.Cut(line, "\t")
			keys = append(keys, key)
		}
		return keys
	}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"counts"}, []string{"hex:", "hex:00", "hex:0066", "a", "b", "hex:6865783a3030", "ü", "hex:ffff"}},
		{[]string{"counts", "--from", "a", "--to", "b"}, []string{"a"}},
		{[]string{"counts", "--from=hex:00", "--limit", "2"}, []string{"hex:00", "hex:0066"}},
		{[]string{"counts", "--from", "hex:6865783a3030", "--limit", "1"}, []string{"hex:6865783a3030"}},
		{[]string{"counts", "--from", "z", "--to", "a"}, nil},
		{[]string{"windows", "--from", "b"}, []string{"b"}},
		{[]string{"prices", "--to", "b"}, []string{"apple", "apple"}},
	} {
		if got := keys(test.args...); !slices.Equal(got, test.want) {
			t.Errorf("%v: keys %q, want %q", test.args, got, test.want)
		}
	}
	want(t, exitFailed, "", "usage: tidemark dump", "dump", root, "0_0")
	want(t, exitFailed, "", "usage: tidemark dump", "dump", root, "0_0", "counts", "--limit", "-1")
	want(t, exitFailed, "", "invalid byte", "dump", root, "0_0", "counts", "--from", "hex:xy")
	want(t, exitFailed, "", "no task 9_9 here, only 0_0, 0_1, 1_0", "dump", root, "9_9", "counts")
	want(t, exitFailed, "", `no store "none", only counts, latest, windows`, "dump", root, "0_0", "none")
	want(t, exitFailed, "", "there is no task store", "dump", root, "1_0", "counts")
	must(t, os.MkdirAll(filepath.Join(root, "second", "0_0"), 0o700))
	want(t, exitFailed, "", "say which with --app", "dump", root, "0_0", "counts")
	want(t, exitOK, "a\t", "", "dump", root, "0_0", "counts", "--app", "app")
	want(t, exitFailed, "", "no application third", "dump", root, "0_0", "counts", "--app", "third")
	want(t, exitOK, "a\t", "", "dump", app.TaskDir("0_0"), "0_0", "counts")
}

func TestVerify(t *testing.T) {
	root, _ := stateDir(t)
	golden(t, "verify.txt", root, want(t, exitOK, "0 problems", "", "verify", root))
	golden(t, "verify.json", root, want(t, exitOK, "{", "", "verify", root, "--json"))
}

// What is wrong with a directory is found, named and does not hide the others; and looking
// changes nothing.
func TestDamagedDirectories(t *testing.T) {
	one := func(t *testing.T, dir, pattern string) string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		if len(names) == 0 {
			t.Fatalf("no %s in %s", pattern, dir)
		}
		return names[len(names)-1]
	}
	zero := func(t *testing.T, name string, from, n int64) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt(make([]byte, n), from)
		must(t, err)
		must(t, f.Close())
	}
	for _, test := range []struct {
		name            string
		damage          func(t *testing.T, dir string)
		inspect, verify int
		inspectText     string
		verifyText      string
	}{
		{"manifest missing", func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "MANIFEST-*"))) },
			exitProblems, exitProblems, "corrupt", "corrupt"},
		{"manifest damaged", func(t *testing.T, dir string) { zero(t, one(t, dir, "MANIFEST-*"), 20, 40) },
			exitProblems, exitProblems, "corrupt", "corrupt"},
		{"markers missing", func(t *testing.T, dir string) {
			must(t, os.Remove(one(t, dir, "marker.manifest.*")))
		}, exitProblems, exitProblems, "corrupt", "corrupt"},
		{"table missing", func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "*.sst"))) },
			exitProblems, exitProblems, "corrupt", "corrupt"},
		{"table cut", func(t *testing.T, dir string) { must(t, os.Truncate(one(t, dir, "*.sst"), 100)) },
			exitProblems, exitProblems, "corrupt", "corrupt"},
		{"table zeroed", func(t *testing.T, dir string) { zero(t, one(t, dir, "*.sst"), 0, 200) },
			exitProblems, exitProblems, "corrupt", "corrupt"},
		{"file in place of a directory", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		}, exitOK, exitOK, "not of a task: 0_0", "0_1"},
		{"file in place of a table", func(t *testing.T, dir string) {
			name := one(t, dir, "*.sst")
			must(t, os.Remove(name))
			must(t, os.MkdirAll(name, 0o700))
		}, exitProblems, exitProblems, "PROBLEM", "PROBLEM"},
		{"marked as damaged", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "tidemark.corrupt"), []byte("block 7 is bad"), 0o600))
		}, exitProblems, exitProblems, "block 7 is bad", "block 7 is bad"},
		{"creation not finished", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.MkdirAll(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "tidemark.creating"), nil, 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "000002.log"), nil, 0o600))
		}, exitOK, exitOK, "no task store", "no task store"},
		{"emptied", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.MkdirAll(dir, 0o700))
		}, exitOK, exitOK, "no task store", "no task store"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, app := stateDir(t)
			test.damage(t, app.TaskDir("0_0"))
			before := files(t, root)
			out := want(t, test.inspect, test.inspectText, "", "inspect", root)
			if !strings.Contains(out, "task 0_1: ok") {
				t.Errorf("the other task is not there:\n%s", out)
			}
			if out := want(t, test.verify, test.verifyText, "", "verify", root); !strings.Contains(out, "task 0_1: ok") {
				t.Errorf("the other task is not there:\n%s", out)
			}
			if d := cmp.Diff(before, files(t, root)); d != "" {
				t.Errorf("looking changed files:\n%s", d)
			}
		})
	}
}

// files gives the content of all files below a directory.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// A log that a crash has torn is no damage: what is whole of it counts.
func TestTornLog(t *testing.T) {
	dir := crashed(t)
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	must(t, err)
	info, err := os.Stat(logs[len(logs)-1])
	must(t, err)
	must(t, os.Truncate(logs[len(logs)-1], info.Size()-10))
	want(t, exitOK, "not closed cleanly", "", "inspect", dir)
	want(t, exitOK, "0 problems", "", "verify", dir)
}

func TestCommandsThatCannotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, command := range []string{"inspect", "verify"} {
		want(t, exitFailed, "", "usage: tidemark "+command, command)
		want(t, exitFailed, "", "usage: tidemark "+command, command, "a", "b")
		want(t, exitOK, "", "usage: tidemark "+command, command, "-h")
		want(t, exitFailed, "", "no such file", command, filepath.Join(t.TempDir(), "none"))
		want(t, exitFailed, "", "is a file", command, file)
		want(t, exitFailed, "", "has no application in it", command, t.TempDir())
	}
	want(t, exitFailed, "", "usage: tidemark snapshot", "snapshot", "a")
	want(t, exitFailed, "", "no such file", "snapshot", filepath.Join(t.TempDir(), "none"), "b")
}
