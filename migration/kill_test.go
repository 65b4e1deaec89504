package migration

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/statestore"
)

// The test binary is also the process that is killed: with these variables it does what the case says in the
// directory.
const (
	migrateVariable = "MIGRATION_TEST_DIR"
	caseVariable    = "MIGRATION_TEST_CASE"
)

func migrateInChild(dir string) {
	if err := killCases[os.Getenv(caseVariable)].run(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// killCase is a directory, what is done with it, and what it must hold at the end.
type killCase struct {
	points  []string
	prepare func(t *testing.T, dir string)
	run     func(dir string) error
	killed  func(t *testing.T, dir string) // what must be true at every point
	check   func(t *testing.T, dir string)
}

func apply(dir string, o Options) error {
	o.CleanShutdown, o.Logger, o.Jobs = true, quiet, 1
	_, err := Apply(context.Background(), dir, o)
	return err
}

func taskIn(dir string) string { return filepath.Join(dir, "app", "0_0") }

// killCases by name; filled by init, because a case's process finds itself in it.
var killCases map[string]killCase

func init() {
	killCases = map[string]killCase{
		"split": {
			points: []string{"migration-split", "migration-offsets-written"},
			prepare: func(t *testing.T, dir string) {
				must(t, os.MkdirAll(taskIn(dir), 0o700))
				must(t, os.WriteFile(filepath.Join(taskIn(dir), checkpointName), []byte("0\n2\napp-mine-changelog 0 41\napp-other-changelog 0 -4\n"), 0o600))
			},
			run: func(dir string) error { return apply(dir, Options{Own: []string{"mine", "other"}}) },
			check: func(t *testing.T, dir string) {
				for name, want := range map[string]string{storeCheckpoint + "mine": "0\n1\napp-mine-changelog 0 41\n", storeCheckpoint + "other": "0\n1\napp-other-changelog 0 -4\n"} {
					if got, err := os.ReadFile(filepath.Join(taskIn(dir), name)); err != nil || string(got) != want {
						t.Errorf("%s: %q, %v", name, got, err)
					}
				}
			},
		},
		"stores": {
			points: []string{"migration-cleared", "migration-loaded", "migration-recorded", "migration-data-renamed", "migration-file-renamed",
				"migration-temporary-removed", "migration-quarantined"},
			prepare: prepareStores,
			run:     func(dir string) error { return apply(dir, Options{}) },
			check: func(t *testing.T, dir string) {
				checkStores(t, dir)
				if left, err := filepath.Glob(filepath.Join(taskIn(dir), "*"+temporarySuffix)); err != nil || len(left) > 0 || exists(t, filepath.Join(taskIn(dir), checkpointName+temporarySuffix)) {
					t.Errorf("temporary files: %q, %v", left, err)
				}
			},
		},
		"kept": {
			points:  []string{"migration-kept", "migration-recorded", "migration-data-renamed", "migration-file-renamed"},
			prepare: prepareStores,
			run:     func(dir string) error { return apply(dir, Options{Keep: true}) },
			killed: func(t *testing.T, dir string) { // a program that knows nothing of it starts and closes in between
				must(t, Sweep(taskIn(dir)))
				for _, name := range originals {
					if path := filepath.Join(taskIn(dir), name); !exists(t, path) && !exists(t, path+migratedSuffix) {
						t.Errorf("%s is gone, and was to be kept", name)
					}
				}
			},
			check: func(t *testing.T, dir string) {
				must(t, Sweep(taskIn(dir)))
				checkStores(t, dir)
			},
		},
		"source": {
			points: []string{"migration-cleared", "migration-loading", "migration-loaded", "migration-recorded"},
			prepare: func(t *testing.T, dir string) {
				must(t, os.MkdirAll(taskIn(dir), 0o700))
				must(t, os.WriteFile(filepath.Join(taskIn(dir), checkpointName), []byte("0\n1\napp-kv-changelog 0 41\n"), 0o600))
			},
			run: func(dir string) error {
				return apply(dir, Options{Specs: map[string]statestore.Spec{"kv": {Kind: statestore.KindTimestampedKeyValue}},
					Sources: map[string]OpenSource{"kv": func(string) (Source, error) { return manyRows{}, nil }}})
			},
			check: checkManyRows,
		},
		"bad databases": {
			points: []string{"migration-given-up", "migration-bad-quarantined", "migration-data-quarantined", "migration-recorded", "migration-file-renamed"},
			prepare: func(t *testing.T, dir string) {
				prepareStores(t, dir)
				removeManifests(t, filepath.Join(taskIn(dir), "stores", "counts"))
				table := filepath.Join(taskIn(dir), "goka", "app-goka-changelog.0")
				gokaTableAt(t, table, 100, "7", false)
				must(t, os.Remove(one(t, table, "MANIFEST-*")))
			},
			run:   func(dir string) error { return apply(dir, Options{}) },
			check: checkBadDatabases,
		},
		"sweep": {
			points: []string{"migration-sweeping", "migration-swept"},
			prepare: func(t *testing.T, dir string) {
				prepareStores(t, dir)
				must(t, apply(dir, Options{}))
			},
			run: func(dir string) error { return Sweep(taskIn(dir)) },
			check: func(t *testing.T, dir string) {
				if diff := cmp.Diff(wantContent(0, 300), contentOf(t, taskIn(dir))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				must(t, filepath.WalkDir(taskIn(dir), func(path string, _ fs.DirEntry, err error) error {
					if isMigrated(filepath.Base(path)) {
						t.Errorf("%s is left", path)
					}
					return err
				}))
				if kept, err := filepath.Glob(filepath.Join(taskIn(dir), "bad.position"+quarantineMarker+"*")); err != nil || len(kept) != 1 {
					t.Errorf("quarantined: %q, %v", kept, err)
				}
			},
		},
	}
}

// TestKill kills the process for real at every step, and at later turns of each (all, or of very many
// a part), then runs the same again.
func TestKill(t *testing.T) {
	for name, c := range killCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := t.TempDir()
			c.prepare(t, template)
			for _, point := range c.points {
				for turn := 1; ; turn += 1 + turn/6 {
					dir := t.TempDir()
					must(t, os.CopyFS(dir, os.DirFS(template)))
					at := fmt.Sprintf("%s:%d", point, turn)
					killed := runMigration(t, dir, name, at)
					if !killed && turn == 1 {
						t.Errorf("%s is never reached", point)
					}
					if killed {
						if c.killed != nil {
							c.killed(t, dir)
						}
						if runMigration(t, dir, name, "") {
							t.Fatalf("%s: killed without a reason", at)
						}
					}
					c.check(t, dir)
					if t.Failed() {
						t.Fatalf("after a kill at %s", at)
					}
					if !killed {
						break
					}
				}
			}
		})
	}
}

// Every step of the package that a kill can come behind is one that TestKill kills at.
func TestKillKnowsEveryStep(t *testing.T) {
	known := map[string]bool{}
	for _, c := range killCases {
		for _, p := range c.points {
			known[p] = true
		}
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	hit, found := regexp.MustCompile(`failpoint\.(?:Hit\(|RemoveAll\(.+, )"([^"]+)"\)`), 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		must(t, err)
		for _, m := range hit.FindAllSubmatch(text, -1) {
			if found++; !known[string(m[1])] {
				t.Errorf("%s: no kill at %s", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d steps", found)
	}
}

// originals of legacyTask.
var originals = []string{checkpointName, "counts.position", "names.position", "stores/counts", "stores/names", "other/scratch"}

func prepareStores(t *testing.T, dir string) {
	task := legacyTask(t, dir, 0, 300)
	must(t, os.WriteFile(filepath.Join(task, "bad"+positionSuffix), []byte("0\n"), 0o600))
	for _, name := range []string{checkpointName, "counts" + positionSuffix} {
		must(t, os.WriteFile(filepath.Join(task, name+temporarySuffix), []byte("0\n9"), 0o600))
	}
}

func checkStores(t *testing.T, dir string) {
	t.Helper()
	if diff := cmp.Diff(wantContent(0, 300), contentOf(t, taskIn(dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkNothingLost(t, taskIn(dir))
}

func removeManifests(t *testing.T, dir string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	must(t, err)
	for _, m := range manifests {
		must(t, os.Remove(m))
	}
}

func checkBadDatabases(t *testing.T, dir string) {
	t.Helper()
	got := contentOf(t, taskIn(dir))
	if got.Rows["counts"] != 0 || got.Rows["names"] != 10 || got.Offsets["names"] != "at 20" || got.Offsets["counts"] != "absent" {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"stores/counts", "goka/app-goka-changelog.0"} {
		path := filepath.Join(taskIn(dir), name)
		if kept, err := filepath.Glob(path + quarantineMarker + "*"); err != nil || len(kept) != 1 || exists(t, path) {
			t.Errorf("quarantined: %q, %v", kept, err)
		}
	}
}

// manyRows is a Source of several batches: values of a megabyte behind a timestamp.
type manyRows struct{}

const manyRowsCount = 10

func manyRow(i int) statestore.Row {
	return statestore.Row{Key: legacyKey(i), Value: append(binary.BigEndian.AppendUint64(nil, uint64(1000+i)), bytes.Repeat([]byte{byte(i)}, 1<<20)...)}
}

func (manyRows) Rows() iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		for i := range manyRowsCount {
			if !yield(manyRow(i), nil) {
				return
			}
		}
	}
}

func (manyRows) Close() error { return nil }

func checkManyRows(t *testing.T, dir string) {
	t.Helper()
	v, err := statestore.OpenReadOnly(taskIn(dir), statestore.ReadOptions{})
	must(t, err)
	defer v.Close()
	if m := v.Metadata(); len(m.Stores) != 1 || m.Stores[0].Offset != statestore.At(42) || len(m.Imports) != 1 {
		t.Errorf("%+v", m)
	}
	n := 0
	for row, err := range v.Rows("kv", nil, nil) {
		must(t, err)
		if want := manyRow(n); !bytes.Equal(row.Key, want.Key) || !bytes.Equal(row.Value, want.Value[8:]) && !bytes.Equal(row.Value, want.Value) {
			t.Fatalf("row %d: key %q and %d bytes", n, row.Key, len(row.Value))
		}
		n++
	}
	if n != manyRowsCount {
		t.Errorf("%d rows", n)
	}
}

// checkNothingLost: every original is there, under its new name.
func checkNothingLost(t *testing.T, task string) {
	t.Helper()
	for _, name := range originals {
		if exists(t, filepath.Join(task, name)) || !exists(t, filepath.Join(task, name+migratedSuffix)) {
			t.Errorf("%s was not renamed", name)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(task, "bad.position"+quarantineMarker+"*")); err != nil || len(kept) != 1 {
		t.Errorf("quarantined: %q, %v", kept, err)
	}
}

// TestKillSplit kills the process behind each file that it gives to a program's own store: the
// others get theirs afterwards, and a file that was there since is not overwritten.
func TestKillSplit(t *testing.T) {
	for turn := 1; turn <= 2; turn++ {
		dir := taskWith(t, checkpointName, []byte("0\n2\napp-mine-changelog 0 41\napp-other-changelog 0 -4\n"))
		task := filepath.Join(dir, "app", "0_0")
		if !runMigration(t, dir, "split", fmt.Sprintf("migration-split:%d", turn)) {
			t.Fatalf("migration-split:%d is never reached", turn)
		}
		if split, err := filepath.Glob(filepath.Join(task, storeCheckpoint+"*")); err != nil || len(split) != turn {
			t.Errorf("turn %d: after the kill %q, %v", turn, split, err)
		}
		if !exists(t, filepath.Join(task, checkpointName)) {
			t.Errorf("turn %d: .checkpoint is gone before all have theirs", turn)
		}
		const newer = "0\n1\napp-mine-changelog 0 50\n" // its program has run in between
		must(t, os.WriteFile(filepath.Join(task, storeCheckpoint+"mine"), []byte(newer), 0o600))
		for range 2 {
			if runMigration(t, dir, "split", "") {
				t.Fatal("killed without a reason")
			}
		}
		got := map[string]string{}
		for _, name := range []string{storeCheckpoint + "mine", storeCheckpoint + "other", checkpointName + migratedSuffix} {
			content, err := os.ReadFile(filepath.Join(task, name))
			must(t, err)
			got[name] = string(content)
		}
		want := map[string]string{storeCheckpoint + "mine": newer, storeCheckpoint + "other": "0\n1\napp-other-changelog 0 -4\n",
			checkpointName + migratedSuffix: "0\n2\napp-mine-changelog 0 41\napp-other-changelog 0 -4\n"}
		if diff := cmp.Diff(want, got); diff != "" || exists(t, filepath.Join(task, checkpointName)) {
			t.Errorf("turn %d (-want +got):\n%s", turn, diff)
		}
	}
}

func runMigration(t *testing.T, dir, name, point string) (killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), migrateVariable+"="+dir, caseVariable+"="+name, failpoint.Env+"="+point)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatalf("%s at %q: %v: %s", name, point, err, stderr.Bytes())
	}
	return false
}
