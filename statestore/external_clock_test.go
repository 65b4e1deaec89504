package statestore

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A versioned store of the program's own that is a commit behind gets all versions of that
// commit from the changelog: none is late there because of what the task's database knows of
// the time afterwards. In the end it knows that time again.
func TestOwnVersionedStoreIsBehind(t *testing.T) {
	const changelog = "app-own-changelog"
	for name, lost := range map[string]bool{"one commit": false, "everything": true} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			spec := Spec{Name: "own", Kind: KindVersioned, Changelog: changelog, Retention: time.Hour}
			open := func() *TaskStore { return openWithFile(t, fs, fs, &spec, true) }
			var log []RestoreRecord
			write := func(s *TaskStore, n int64, versions map[string]int64) {
				v, err := s.Versioned("own")
				must(t, err)
				// In the order of time: none is too old.
				for _, key := range slices.SortedFunc(maps.Keys(versions), func(a, b string) int { return cmp.Compare(versions[a], versions[b]) }) {
					_, err := v.Put([]byte(key), []byte(key), versions[key])
					must(t, err)
				}
				x, err := s.Seal(Progress{ID: CommitID{1, n}})
				must(t, err)
				for c := range x.Changes() {
					log = append(log, RestoreRecord{Key: append([]byte{}, c.Key...), Value: append([]byte{}, c.Value...), Timestamp: c.Timestamp})
				}
				must(t, s.Commit(x, map[string]Offset{"own": At(int64(len(log)))}))
				s.Release(x)
				must(t, s.Close())
			}
			write(open(), 1, map[string]int64{"k": 100*time.Hour.Milliseconds() - 1000, "late": 100 * time.Hour.Milliseconds()})
			first := len(log)
			older, err := readWhole(fs, "files/own")
			must(t, err)
			end := 300 * time.Hour.Milliseconds()
			write(open(), 2, map[string]int64{"k": 200 * time.Hour.Milliseconds(), "end": end})
			if lost {
				older, first = nil, 0
			}
			f, err := fs.Create("files/own", vfs.WriteCategoryUnspecified)
			must(t, err)
			_, err = f.Write(older)
			must(t, errors.Join(err, f.Close()))

			s := open()
			must(t, s.Restore("own", log[first:], int64(len(log))))
			must(t, s.Complete(Progress{ID: CommitID{1, 2}}, nil))
			v, err := s.Versioned("own")
			must(t, err)
			for key, at := range map[string]int64{"k": 200 * time.Hour.Milliseconds(), "late": 100 * time.Hour.Milliseconds(), "end": end} {
				x, ok, err := v.Get([]byte(key))
				if err != nil || !ok || x.From != at {
					t.Errorf("%s: %+v, %v, %v; want the version of %d", key, x, ok, err, at)
				}
			}
			if v.StreamTime() != end {
				t.Errorf("stream time %d, want %d", v.StreamTime(), end)
			}
		})
	}
}

// A store of the program's own may survive a power loss further than the task's database, which
// keeps its stream time. What it holds must not be hidden then: it is restored from the start.
func TestStoreWithAClockIsAhead(t *testing.T) {
	for _, manages := range []bool{true, false} {
		fs := newCrashFS()
		spec := Spec{Name: "own", Kind: KindWindow, Changelog: "app-own-changelog", Retention: time.Hour}
		open := func(fs vfs.FS) *TaskStore { return openWithFile(t, fs, fs, &spec, manages) }
		s := open(fs)
		must(t, s.Sync())
		w, err := s.Window("own")
		must(t, err)
		must(t, w.Put([]byte("k"), []byte("v"), 5000, 1))
		commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"own": At(1)})
		must(t, spec.Store.Sync())
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		must(t, s.Close())

		s = open(clone)
		states, err := s.Stores()
		must(t, err)
		if st := states[0]; !st.Offset.IsAbsent() || st.Complete {
			t.Errorf("manages offsets %t: %+v; want it to be restored from the start", manages, st)
		}
		must(t, s.Clear("own"))
		must(t, s.Restore("own", []RestoreRecord{{Key: append([]byte("k"), 0, 0, 0, 0, 0, 0, 0x13, 0x88, 0, 0, 0, 0), Value: []byte("v"), Timestamp: 1}}, 1))
		must(t, s.Complete(Progress{ID: CommitID{1, 1}}, nil))
		w, err = s.Window("own")
		must(t, err)
		if v, _, ok, err := w.Get([]byte("k"), 5000); err != nil || !ok || string(v) != "v" || w.StreamTime() != 5000 {
			t.Errorf("after the restore: %q, %v, %v, stream time %d", v, ok, err, w.StreamTime())
		}
	}
}

// The power fails twice while a store with a clock of the program's own is restored anew: the database has then the
// record from before, whose stream time is that of the former content, though its offset may be the store's.
func TestStoreWithAClockHasAnotherContent(t *testing.T) {
	for name, completed := range map[string]bool{"complete at a later commit": true, "not complete": false} {
		t.Run(name, func(t *testing.T) {
			db, files := newCrashFS(), vfs.NewMem()
			spec := Spec{Name: "own", Kind: KindTimestampedWindow, Changelog: "app-own-changelog", Retention: time.Hour, WindowSize: time.Minute}
			open := func(fs vfs.FS) *TaskStore { return openWithFile(t, fs, files, &spec, true) }
			s := open(db)
			w, err := s.Window("own")
			must(t, err)
			must(t, w.Put([]byte("k"), []byte("v"), 0, 1))
			commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"own": At(1)})
			must(t, s.Sync())
			clone := db.CrashClone(vfs.CrashCloneCfg{}) // what follows is lost in the database
			must(t, s.Clear("own"))
			must(t, s.Restore("own", []RestoreRecord{{Key: append([]byte("k"), 0, 0, 0, 0, 0, 0, 0x13, 0x88, 0, 0, 0, 0), Value: []byte("v"), Timestamp: 1}}, 1))
			if completed {
				must(t, s.Complete(Progress{ID: CommitID{1, 3}}, nil))
			}
			must(t, s.Close())

			states, err := open(clone).Stores()
			must(t, err)
			if st := states[0]; !st.Offset.IsAbsent() || st.Complete {
				t.Errorf("%+v; want it to be restored from the start", st)
			}
		})
	}
}

// A versioned store of the program's own that is behind has rows that end after all that is restored
// first: an older version that comes late ends where they begin.
func TestOwnVersionedStoreGetsAnOlderVersion(t *testing.T) {
	fs := vfs.NewMem()
	spec := Spec{Name: "own", Kind: KindVersioned, Changelog: "app-own-changelog", Retention: time.Hour}
	open := func() *TaskStore { return openWithFile(t, fs, fs, &spec, true) }
	putBack(t, fs, open, nil, 2666)
	s := open()
	must(t, s.Restore("own", []RestoreRecord{{Key: []byte("k"), Value: []byte("v"), Timestamp: 2000}}, 2))
	must(t, s.Complete(Progress{ID: CommitID{1, 2}}, nil))
	v, err := s.Versioned("own")
	must(t, err)
	if x, ok, err := v.Get([]byte("k")); ok || err != nil {
		t.Errorf("the deleted key has the newest version %+v, %v", x, err)
	}
	if x, ok, err := v.GetAsOf([]byte("k"), 2000); !ok || err != nil || x.To != 2666 {
		t.Errorf("as of 2000: %+v, %v, %v; want one up to 2666", x, ok, err)
	}
}

// A versioned store of the program's own is behind, and what the database knows of the time waits for the
// end of the restore. It must not get lost when the power fails meanwhile, whatever was written by then.
func TestOwnVersionedStoreKeepsItsTime(t *testing.T) {
	const end = 300_000
	for name, write := range map[string]func(*TaskStore) error{
		"owner":             func(s *TaskStore) error { return s.StampOwner(Owner{ProcessID: "p"}) },
		"adopt":             func(s *TaskStore) error { return s.Adopt("own") },
		"restore":           func(s *TaskStore) error { return s.Restore("own", nil, 2) },
		"restore of others": func(s *TaskStore) error { return s.Restore("counts", nil, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			spec := Spec{Name: "own", Kind: KindVersioned, Changelog: "app-own-changelog", Retention: time.Minute}
			open := func() *TaskStore {
				file, err := openFileStore(fs, "files/own", true)
				must(t, err)
				spec.Store = file
				return openStore(t, "t", memOptions(fs), spec, countsSpec)
			}
			putBack(t, fs, open, []byte("v"), end)
			s := open()
			must(t, write(s))
			must(t, s.Close()) // as a crash of the process with all of that in the log
			s = open()
			must(t, s.Complete(Progress{ID: CommitID{1, 2}}, nil))
			v, err := s.Versioned("own")
			if err != nil || v.StreamTime() != end {
				t.Errorf("stream time %d, %v; want %d", v.StreamTime(), err, end)
			}
			if x, ok, err := v.GetAsOf([]byte("k"), end); err != nil || !ok || string(x.Value) != "v" {
				t.Errorf("as of %d: %+v, %v, %v", end, x, ok, err)
			}
			must(t, s.Close())
		})
	}
}

// putBack leaves a versioned store of the program's own a commit behind its task store, with one version of a key.
func putBack(t *testing.T, fs vfs.FS, open func() *TaskStore, value []byte, at int64) {
	t.Helper()
	s := open()
	v, err := s.Versioned("own")
	must(t, err)
	_, err = v.Put([]byte("k"), value, at)
	must(t, err)
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"own": At(1)})
	must(t, s.Close())
	older, err := readWhole(fs, "files/own")
	must(t, err)
	s = open()
	commit(t, s, Progress{ID: CommitID{1, 2}}, map[string]Offset{"own": At(2)})
	must(t, s.Close())
	f, err := fs.Create("files/own", vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(older)
	must(t, errors.Join(err, f.Close()))
}
