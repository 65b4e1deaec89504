package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

// countAll runs a loop on cfg until all records that were produced are counted, and closes it.
func (w *world) countAll(x *watch, cfg embedded.Config, looks ...func(loop)) {
	w.t.Helper()
	l := w.start(cfg)
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	w.until(l, f, "all records are counted and committed", func() bool {
		return len(l.Ready()) == 4 && x.reached(w.seq) && l.Commit(context.Background()) == nil
	})
	for _, look := range looks {
		look(l)
	}
	w.close(l)
}

// What a Go application with a database and an offset for each store has left goes on to count, and nothing is restored.
func TestLegacyState(t *testing.T) {
	each(t, func(w *world) {
		x, cfg := w.watch(), w.config(w.t.TempDir(), embedded.ExactlyOnce)
		w.produce(200)
		w.countAll(x, cfg)
		for n := range 4 {
			asLegacy(w.t, filepath.Join(cfg.StateDir, cfg.App, fmt.Sprintf("0_%d", n)))
		}
		w.produce(200)
		cfg.Migration = migration.Options{CleanShutdown: true}
		w.countAll(x, cfg, func(l loop) {
			for _, task := range l.Status().Tasks {
				for _, r := range task.Restore {
					if r.Records != 0 || r.From == 0 {
						w.t.Errorf("task %v: %+v", task.ID, r)
					}
				}
			}
		})
		x.check(w.t, w.seq, embedded.ExactlyOnce)
		left, err := filepath.Glob(filepath.Join(cfg.StateDir, cfg.App, "0_*", ".checkpoint*"))
		if err != nil || len(left) > 0 {
			w.t.Errorf("after a clean close there are still %v, %v", left, err)
		}
	})
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// asLegacy replaces a task directory by one with the same rows in a database for each store, and a .checkpoint file.
func asLegacy(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{})
	must(err)
	old, checkpoint := dir+".old", ""
	for _, s := range v.Metadata().Stores {
		db, err := pebble.Open(filepath.Join(old, "stores", s.Spec.Name), &pebble.Options{Logger: quiet{}})
		must(err)
		for row, err := range v.Rows(s.Spec.Name, nil, nil) {
			must(err)
			must(db.Set(row.Key, row.Value, pebble.Sync))
		}
		must(db.Close())
		next, ok := s.Offset.Next()
		if !ok {
			t.Fatalf("%s: store %+v", dir, s)
		}
		checkpoint += fmt.Sprintf("%s %s %d\n", s.Spec.Changelog, filepath.Base(dir)[2:], next-1)
	}
	must(v.Close())
	must(os.MkdirAll(old, 0o700))
	must(os.WriteFile(filepath.Join(old, ".checkpoint"), []byte("0\n1\n"+checkpoint), 0o600))
	must(os.RemoveAll(dir))
	must(os.Rename(old, dir))
}

// For a placement of the user's own: what is here lags behind nothing, what is on this disk only lacks what came since, and what
// is not here lacks all.
func TestOffsetsAndLags(t *testing.T) {
	each(t, func(w *world) {
		ctx, x := context.Background(), w.watch()
		ready, late := w.config(w.t.TempDir(), embedded.ExactlyOnce), w.config(w.t.TempDir(), embedded.ExactlyOnce)
		empty := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		lags := func(l loop) map[int32][]offsetcache.Lag {
			got, err := l.Lags(ctx)
			if err != nil {
				w.t.Error(err)
			}
			for n, list := range got {
				if len(list) != 1 || list[0].Store != "counts" || list[0].Changelog.Partition != n || list[0].Unknown {
					w.t.Errorf("partition %d: %+v", n, list)
				}
			}
			return got
		}
		w.produce(100)
		l := w.start(late)
		if got := lags(l); len(got) != 0 || len(l.Offsets()) != 0 {
			w.t.Errorf("before there is anything: %v, %v", got, l.Offsets())
		}
		w.close(l)
		w.countAll(x, late)
		w.produce(100)
		w.countAll(x, ready, func(l loop) {
			if got := lags(l); len(got) != 4 || len(l.Offsets()) != 4 {
				w.t.Errorf("here: %v, %v", got, l.Offsets())
			}
			for n, lag := range lags(l) {
				if lag[0].Records != 0 || lag[0].Whole {
					w.t.Errorf("here: partition %d: %+v", n, lag)
				}
			}
		})
		sum := func(cfg embedded.Config, whole bool) (records int64) {
			cfg.App = w.app
			l, err := w.open(w.b.Addrs, w.app+"-other-group", []string{w.in}, cfg) // not polled: nothing is assigned
			if err != nil {
				w.t.Fatal(err)
			}
			defer w.close(l)
			for n, lag := range lags(l) {
				if lag[0].Whole != whole {
					w.t.Errorf("partition %d: %+v, want whole %v", n, lag, whole)
				}
				records += lag[0].Records
			}
			return records
		}
		was, some, all := sum(ready, false), sum(late, false), sum(empty, true)
		if was > 4 || some <= was || all <= some { // 4: a marker each behind the last record
			w.t.Errorf("the one that was there last lacks %d records, the one before %d, an empty one %d", was, some, all)
		}
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}

// A damaged directory is set aside and restored; one that is not used for long is removed.
func TestDamagedAndOld(t *testing.T) {
	each(t, func(w *world) {
		x, cfg := w.watch(), w.config(w.t.TempDir(), embedded.ExactlyOnce)
		w.produce(200)
		w.countAll(x, cfg)
		app := filepath.Join(cfg.StateDir, cfg.App)
		for n := range 4 {
			files, err := filepath.Glob(filepath.Join(app, fmt.Sprintf("0_%d", n), "MANIFEST-*"))
			if err != nil || len(files) == 0 {
				w.t.Fatalf("no manifest: %v", err)
			}
			for _, f := range files {
				if err := os.WriteFile(f, []byte("not a manifest"), 0o600); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		w.produce(200)
		w.countAll(x, cfg)
		x.check(w.t, w.seq, embedded.ExactlyOnce)
		if aside, _ := filepath.Glob(filepath.Join(app, "0_*.corrupt-*")); len(aside) != 4 {
			w.t.Errorf("set aside: %v", aside)
		}

		cfg.CleanupDelay = time.Millisecond
		cfg.Topics = []string{w.in}
		l, err := w.open(w.b.Addrs, w.app+"-group", []string{w.out}, cfg) // of another topic, which is refused: nothing is assigned
		if err != nil {
			w.t.Fatal(err)
		}
		defer w.close(l)
		eventually(w.t, 90*time.Second, "the directories are removed", func() bool {
			left, err := filepath.Glob(filepath.Join(app, "0_?"))
			return err == nil && len(left) == 0 && len(l.Offsets()) == 0
		})
	})
}

// The host tells what the reading of its task directories found, and what could not be read.
func TestScan(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		w.produce(50)
		cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
		l := w.start(cfg)
		if s := l.Scan(); s == nil || s.Opened+len(s.Failed) != 0 {
			w.t.Errorf("in an empty directory: %+v", s)
		}
		w.processed(l, x)
		w.close(l)
		bad := filepath.Join(cfg.StateDir, cfg.App, "0_9")
		if err := os.WriteFile(bad, nil, 0o600); err != nil {
			w.t.Fatal(err)
		}
		l = w.start(cfg)
		s := l.Scan()
		if s == nil || s.Opened != 4 || len(s.Failed) != 1 || s.Failed[0].Path != bad || s.Failed[0].Err == nil {
			w.t.Errorf("found %+v", s)
		}
		w.close(l)
	})
}
