package statestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowSync is a user's store whose Sync waits until it may go on.
type slowSync struct {
	StateStore
	entered, proceed chan struct{}
}

func (s *slowSync) Sync() error {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.proceed
	}
	return s.StateStore.Sync()
}

// A sync that began before Register found a user's store elsewhere than the commit record says, or emptied it, does
// not make the record's word durable.
func TestSyncBesideRegisterKeepsWhatAStoreSays(t *testing.T) {
	for name, found := range map[string]func(*TaskStore, *externalRows) error{
		"elsewhere": func(s *TaskStore, x *externalRows) error { x.at = StorePoint{}; return s.believe(x) },
		"emptied":   func(s *TaskStore, x *externalRows) error { return s.emptyOwn(x, false) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			var specs []Spec
			for _, n := range []string{"a", "b"} {
				file, err := openFileStore(fs, "files/"+n, true)
				must(t, err)
				specs = append(specs, Spec{Name: n, Kind: KindKeyValue, Changelog: n + "-changelog", Store: file})
			}
			slow := &slowSync{StateStore: specs[0].Store}
			specs[0].Store = slow
			o := memOptions(fs)
			o.SyncInterval = time.Hour
			s := openStore(t, "t", o, specs...)
			defer func() { slow.entered = nil; must(t, s.Close()) }()
			x, err := s.Seal(Progress{ID: CommitID{1, 1}})
			must(t, err)
			must(t, s.Commit(x, map[string]Offset{"a": At(3), "b": At(5)}))
			s.Release(x)

			slow.entered, slow.proceed = make(chan struct{}), make(chan struct{})
			synced := make(chan error)
			go func() { synced <- s.Sync() }()
			<-slow.entered
			s.write.Lock()
			must(t, found(s, s.externals[1]))
			s.write.Unlock()
			close(slow.proceed)
			must(t, <-synced)
			if o := s.DurableOffsets()["b"]; !o.IsAbsent() {
				t.Errorf("the store is nowhere, and durable %v", o)
			}
			slow.entered = nil
			must(t, s.Sync())
			if a, b := s.DurableOffsets()["a"], s.DurableOffsets()["b"]; a != At(3) || !b.IsAbsent() {
				t.Errorf("after the next sync durable at %v and %v", a, b)
			}
		})
	}
}
