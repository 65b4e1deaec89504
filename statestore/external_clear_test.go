package statestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A power loss right after a clear must not bring back what a user's own store had, at an offset
// of the changelog that was given up: the records before it would be missing from then on.
func TestClearOfOwnStoreLastsLongerThanTheDatabases(t *testing.T) {
	for _, spec := range []Spec{ownSpec, wrappedSpec} {
		fs := newCrashFS()
		open := func(fs vfs.FS) *TaskStore {
			file, err := openFileStore(fs, "files/"+spec.Name, spec.Name == "own")
			must(t, err)
			spec.Store = file
			return openStore(t, "t", memOptions(fs), spec)
		}
		s := open(fs)
		must(t, handle(t, s, spec.Name).Put([]byte("old"), []byte("v"), 1))
		commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{spec.Name: At(1)})
		must(t, s.Sync())
		must(t, s.Clear(spec.Name))
		must(t, s.db.Sync()) // the database alone: the worst that can be left
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		must(t, s.Close())

		s = open(clone)
		states, err := s.Stores()
		must(t, err)
		if st := states[0]; !st.Offset.IsAbsent() || !st.Empty {
			t.Errorf("%s: offset %v, empty %t after a clear and a power loss", spec.Name, st.Offset, st.Empty)
		}
	}
}

// Where neither offset nor commit id says anything, a store that holds something is not the one
// of the recorded state, which was empty: what was loaded into it is not known to be whole.
func TestLoadedOwnStoreIsNotComplete(t *testing.T) {
	fs := newCrashFS()
	spec := ownSpec
	open := func(fs vfs.FS) *TaskStore { return openWithFile(t, fs, fs, &spec, true) }
	s := open(fs)
	must(t, s.Complete(Progress{}, nil))
	must(t, s.Sync())
	must(t, s.Load("own", []RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}))
	must(t, spec.Store.Sync())
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())
	states, err := open(clone).Stores()
	must(t, err)
	if st := states[0]; st.Complete || st.Empty {
		t.Errorf("complete %t, empty %t; want what was loaded, and not complete", st.Complete, st.Empty)
	}
}
