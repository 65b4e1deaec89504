package statestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What the task's database says of the rows of a program's own store must be on the disk before there are rows that
// depend on it: the store syncs them without regard to the database.

// ownLost is a store of the program's own whose task's database loses what was not synced.
type ownLost struct {
	t    *testing.T
	fs   *crashFS
	spec Spec
}

func (x *ownLost) open(version uint32) *TaskStore {
	x.t.Helper()
	f, err := openFileStore(x.fs, "own/own", false)
	must(x.t, err)
	spec := x.spec
	spec.Store, spec.SchemaVersion = f, version
	if version > 1 {
		spec.Migrate = &Migration{Value: func(_ uint32, _, value []byte) ([]byte, error) { return append([]byte("migrated "), value...), nil }}
	}
	return openStore(x.t, "t", memOptions(x.fs), spec)
}

// crash goes on with what a power loss leaves: what was synced.
func (x *ownLost) crash(s *TaskStore) {
	clone := x.fs.CrashClone(vfs.CrashCloneCfg{})
	must(x.t, s.Close())
	x.fs = clone
}

// wantOwn wants the value, or a store that is to be restored from the start of its changelog.
func (x *ownLost) wantOwn(s *TaskStore, want string) {
	x.t.Helper()
	if st := state(x.t, s, "own"); st.Offset.IsAbsent() && !st.Complete && st.Empty {
		return
	}
	wantValue(x.t, handle(x.t, s, "own"), "k", want)
}

func TestOwnSchemaVersionIsDurableBeforeItsRows(t *testing.T) {
	for name, before := range map[string]func(x *ownLost){
		"new":   func(*ownLost) {},
		"empty": func(x *ownLost) { must(t, x.open(1).Close()) },
		"emptied": func(x *ownLost) {
			s := x.open(1)
			must(t, handle(t, s, "own").Put([]byte("k"), []byte("old"), 1))
			commit(t, s, Progress{ID: CommitID{1, 1}}, nil) // without an offset: nothing says what it holds
			must(t, s.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := &ownLost{t: t, fs: newCrashFS(), spec: Spec{Name: "own", Kind: KindKeyValue, Changelog: "c"}}
			before(x)
			s := x.open(2)
			must(t, s.Restore("own", []RestoreRecord{{Key: []byte("k"), Value: []byte("v"), Timestamp: 1, Schema: 2}}, 1))
			must(t, s.Complete(Progress{ID: CommitID{1, 2}}, nil))
			x.crash(s)
			s = x.open(2)
			x.wantOwn(s, "v")
			must(t, s.Close())
		})
	}
}

// TestOwnStoreOutlivesItsTaskStore: nothing says which schema version its rows have.
func TestOwnStoreOutlivesItsTaskStore(t *testing.T) {
	x := &ownLost{t: t, fs: newCrashFS(), spec: Spec{Name: "own", Kind: KindKeyValue, Changelog: "c"}}
	fill := func() {
		s := x.open(1)
		must(t, handle(t, s, "own").Put([]byte("k"), []byte("v"), 1))
		commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"own": At(1)})
		must(t, s.Close())
	}
	fill()
	checkpoint, err := readWhole(x.fs, "t/.checkpoint_own")
	must(t, err)
	lose := func() {
		must(t, x.fs.RemoveAll("t"))
		must(t, makeDir(x.fs, "t"))
		f, err := x.fs.Create("t/.checkpoint_own", vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(checkpoint)
		must(t, err)
		must(t, f.Close())
	}
	lose()
	s := x.open(1) // which has no migration: there are no others
	wantValue(t, handle(t, s, "own"), "k", "v")
	must(t, s.Close())

	lose()
	s = x.open(2)
	if st := state(t, s, "own"); !st.Offset.IsAbsent() || st.Complete || !st.Empty {
		t.Errorf("with rows of an unknown version: %+v; want it emptied", st)
	}
	if o := s.DurableOffsets()["own"]; !o.IsAbsent() {
		t.Errorf("durable offset %v of a store that was emptied", o)
	}
	must(t, s.Restore("own", []RestoreRecord{{Key: []byte("k"), Value: []byte("v"), Timestamp: 1, Schema: 1}}, 1))
	must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
	must(t, s.Close())
	s = x.open(2)
	wantValue(t, handle(t, s, "own"), "k", "migrated v")
	must(t, s.Close())
}

// TestOwnSegmentsAreDurableBeforeTheirRows: a store that is cleared gets the segments of its present retention.
func TestOwnSegmentsAreDurableBeforeTheirRows(t *testing.T) {
	for name, manages := range map[string]bool{"own": true, "wrapped": false} {
		t.Run(name, func(t *testing.T) {
			fs := newCrashFS()
			open := func(retention time.Duration) *TaskStore {
				f, err := openFileStore(fs, "own/own", manages)
				must(t, err)
				return openStore(t, "t", memOptions(fs), Spec{Name: "own", Kind: KindWindow, Changelog: "c", Retention: retention, Store: f})
			}
			put := func(s *TaskStore) {
				w, err := s.Window("own")
				must(t, err)
				must(t, w.Put([]byte("k"), []byte("v"), 250_000, 1))
			}
			s := open(100 * time.Second)
			put(s)
			x, err := s.Seal(Progress{ID: CommitID{1, 1}})
			must(t, err)
			var log []RestoreRecord
			for c := range x.Changes() {
				log = append(log, cloneRecord(c))
			}
			must(t, s.Commit(x, map[string]Offset{"own": At(1)}))
			s.Release(x)
			must(t, s.Close())

			s = open(400 * time.Second)
			must(t, s.Clear("own"))
			must(t, s.Restore("own", log, 1))
			must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
			st := s.registered()[0]
			must(t, st.rows.Sync()) // as the background may do it
			clone := fs.CrashClone(vfs.CrashCloneCfg{})
			must(t, s.Close())
			fs = clone

			s = open(400 * time.Second)
			if st := state(t, s, "own"); st.Complete {
				w, err := s.Window("own")
				must(t, err)
				value, _, ok, err := w.Get([]byte("k"), 250_000)
				must(t, err)
				if !ok || string(value) != "v" {
					t.Errorf("a store that is complete lacks its window: %q, %t", value, ok)
				}
			}
			must(t, s.Close())
		})
	}
}
