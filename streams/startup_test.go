package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/statestore"
)

// asLegacy makes of a task directory what a Go application with a database per store would
// have left: the same rows, and the offset in a .checkpoint file.
func asLegacy(t *testing.T, dir string) {
	t.Helper()
	v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := dir + ".old"
	checkpoint := ""
	for _, s := range v.Metadata().Stores {
		db, err := pebble.Open(filepath.Join(old, "stores", s.Spec.Name), &pebble.Options{Logger: quietPebble{}})
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range v.Rows(s.Spec.Name, nil, nil) {
			if err == nil {
				err = db.Set(row.Key, row.Value, pebble.Sync)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		next, ok := s.Offset.Next()
		if !ok {
			t.Fatalf("%s: store %+v", dir, s)
		}
		checkpoint += fmt.Sprintf("%s %s %d\n", s.Spec.Changelog, filepath.Base(dir)[2:], next-1)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, ".checkpoint"), []byte("0\n1\n"+checkpoint), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, dir); err != nil {
		t.Fatal(err)
	}
}

type quietPebble struct{}

func (quietPebble) Infof(string, ...any)      {}
func (quietPebble) Errorf(string, ...any)     {}
func (quietPebble) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// State of another program is taken over at start: nothing is restored, and the counts go on.
func TestLegacyStateIsTakenOver(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, want := lines(200)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		dirs := []string{filepath.Join(e.dir, e.app, "1_0"), filepath.Join(e.dir, e.app, "1_1")}
		for _, dir := range dirs {
			asLegacy(t, dir)
		}
		e.produce(in...)
		cfg := e.config()
		cfg.Migration = migration.Options{CleanShutdown: true}
		app = e.start(e.wordCount(), cfg)
		app.catchUp()
		for _, w := range app.Status().Workers {
			for _, task := range w.Tasks {
				for _, r := range task.Restore {
					if r.Records != 0 || r.From == 0 {
						t.Errorf("task %v: %+v", task.ID, r)
					}
				}
			}
		}
		app.close()
		for w := range want {
			want[w] *= 2
		}
		got, _ := e.counts(e.out)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts: -want +got\n%s", diff)
		}
		for _, dir := range dirs {
			for _, name := range []string{".checkpoint", ".checkpoint.migrated", "stores"} {
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
					t.Errorf("%s is still there after a clean close", filepath.Join(dir, name))
				}
			}
		}
	})
}

// The offset cache knows the tasks of this host from the start on.
func TestLocalOffsets(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, _ := lines(100)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		running := app.LocalOffsets()
		app.close()
		closed := app.LocalOffsets()
		if len(running) != 4 || len(closed) != 4 {
			t.Fatalf("running %+v, closed %+v", running, closed)
		}
		for i, x := range closed {
			v, err := statestore.OpenReadOnly(filepath.Join(e.dir, e.app, x.ID), statestore.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			m := v.Metadata()
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if !running[i].Latest || x.Latest || len(x.Offsets) != len(m.Stores) {
				t.Errorf("running %+v, closed %+v", running[i], x)
			}
			for j, s := range m.Stores {
				if o := x.Offsets[j]; o.Store != s.Spec.Name || o.Offset != s.Offset || o.Changelog.Topic != s.Spec.Changelog {
					t.Errorf("task %s: %+v, on disk %+v", x.ID, o, s)
				}
			}
			if time.Since(m.Owner.Last) > time.Minute || m.Owner.ProcessID == "" {
				t.Errorf("task %s: owner %+v", x.ID, m.Owner)
			}
		}
	})
}

func TestCleanUp(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, want := lines(50)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		if err := app.CleanUp(); err == nil {
			t.Error("state was removed under a running application")
		}
		app.close()
		if err := app.CleanUp(); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(e.dir, e.app, "*_*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
		e.produce(in...)
		app = e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		for w := range want {
			want[w] *= 2
		}
		if got, _ := e.counts(e.out); cmp.Diff(want, got) != "" {
			t.Errorf("counts: -want +got\n%s", cmp.Diff(want, got))
		}
	})
}

// A directory of a task that does not exist any more goes after the delay, by its own record.
func TestOldTaskDirectoryIsRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		stale := filepath.Join(e.dir, e.app, "7_0")
		s, err := statestore.Open(stale, statestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StampOwner(statestore.Owner{ProcessID: "p", Last: time.Now().Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cfg := e.config()
		cfg.CleanupDelay = 300 * time.Millisecond
		app := e.start(e.wordCount(), cfg)
		app.catchUp()
		deadline := time.Now().Add(20 * time.Second)
		for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
			if _, err := os.Lstat(stale); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the directory is still there")
			}
		}
		// Before the end: what a task closes may be as old as this delay before the application has ended.
		if left, err := filepath.Glob(filepath.Join(e.dir, e.app, "?_?")); err != nil || len(left) != 4 {
			t.Errorf("tasks that run: %q, %v", left, err)
		}
		app.close()
	})
}
