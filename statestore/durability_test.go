package statestore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// eventually polls a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		<-tick.C
	}
}

// afterPowerFailure opens what was synced, and nothing else.
func afterPowerFailure(t testing.TB, fs *crashFS) *TaskStore {
	t.Helper()
	return openStore(t, "t", memOptions(fs.CrashClone(vfs.CrashCloneCfg{})), countsSpec)
}

func TestDurability(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	kv := handle(t, s, "counts")
	put := func(v string, n int64) {
		t.Helper()
		must(t, kv.Put([]byte("k"), []byte(v), 1))
		commit(t, s, Progress{ID: CommitID{1, n}, Positions: []Position{{"in", 0, n}}}, map[string]Offset{"counts": At(n)})
	}
	put("1", 1)
	if !s.DurableOffsets()["counts"].IsAbsent() || len(s.DurablePositions()) != 0 {
		t.Errorf("durable before a sync: %v, %v", s.DurableOffsets(), s.DurablePositions())
	}
	wantAbsent(t, handle(t, afterPowerFailure(t, fs), "counts"), "k")
	must(t, s.Sync())
	must(t, s.Sync())
	if s.DurableOffsets()["counts"] != At(1) || s.DurablePositions()[0].Next != 1 {
		t.Errorf("durable after a sync: %v, %v", s.DurableOffsets(), s.DurablePositions())
	}
	put("2", 2)
	if s.DurableOffsets()["counts"] != At(1) || s.CommittedOffsets()["counts"] != At(2) {
		t.Errorf("durable %v, committed %v", s.DurableOffsets(), s.CommittedOffsets())
	}
	wantValue(t, handle(t, afterPowerFailure(t, fs), "counts"), "k", "1")
	must(t, s.Flush())
	wantValue(t, handle(t, afterPowerFailure(t, fs), "counts"), "k", "1")
	must(t, s.Close())
	wantValue(t, handle(t, afterPowerFailure(t, fs), "counts"), "k", "2")
}

func TestBackgroundSync(t *testing.T) {
	fs := newCrashFS()
	o := memOptions(fs)
	o.SyncInterval = time.Millisecond
	s := openStore(t, "t", o, countsSpec)
	for n := int64(1); n < 4; n++ {
		must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
		commit(t, s, Progress{ID: CommitID{1, n}}, map[string]Offset{"counts": At(n)})
		eventually(t, "durable", func() bool { return s.DurableOffsets()["counts"] == At(n) })
		if got := afterPowerFailure(t, fs).CommitID().Number; got != n {
			t.Fatalf("recovered commit %d; want %d", got, n)
		}
	}
}

// TestSyncTimer: one sync for all commits of an interval, and none
// while there is nothing to sync.
func TestSyncTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var y syncer
		y.init(&TaskStore{o: Options{SyncInterval: time.Second}, resources: privateResources(Options{})})
		defer y.s.resources.r.Close()
		y.s.committed.Store(&progress{})
		y.s.durable.Store(&progress{})
		armed := func() bool {
			y.mu.Lock()
			defer y.mu.Unlock()
			return y.armed
		}
		for range 3 {
			y.arm()
			<-time.After(900 * time.Millisecond)
			y.arm()
			if !armed() {
				t.Error("not armed before the interval is over")
			}
			<-time.After(200 * time.Millisecond)
			synctest.Wait()
			if armed() {
				t.Error("armed after the sync, with nothing written since")
			}
		}
		y.arm()
		y.stop()
		y.arm()
		y.stop()
	})
}

func TestSyncEveryCommit(t *testing.T) {
	fs := newCrashFS()
	o := memOptions(fs)
	o.SyncEveryCommit = true
	s := openStore(t, "t", o, countsSpec)
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(1)})
	if s.DurableOffsets()["counts"] != At(1) {
		t.Errorf("durable %v", s.DurableOffsets())
	}
	wantValue(t, handle(t, afterPowerFailure(t, fs), "counts"), "k", "v")
}

func TestReplayIsReported(t *testing.T) {
	fs := newCrashFS()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	for n := int64(1); n <= 3; n++ {
		must(t, handle(t, s, "counts").Put([]byte("k"), make([]byte, 1000), 1))
		commit(t, s, Progress{ID: CommitID{1, n}}, nil)
	}
	must(t, s.Sync())
	st := afterPowerFailure(t, fs).OpenStats()
	if st.ReplayedBatches < 3 || st.ReplayedBytes < 3000 || st.ReplayedKeys < 6 || st.Created {
		t.Errorf("after a crash: %+v", st)
	}
	if st.ID != s.OpenStats().ID || st.ID == [16]byte{} {
		t.Errorf("id %x, was %x", st.ID, s.OpenStats().ID)
	}
}

func TestCloseInsideAScan(t *testing.T) {
	s := openStore(t, "t", memOptions(vfs.NewMem()), countsSpec)
	kv := handle(t, s, "counts")
	must(t, kv.Put([]byte("k"), []byte("v"), 1))
	for _, err := range kv.All() {
		must(t, err)
		if err := s.Close(); err == nil || errors.Is(err, ErrClosed) {
			t.Errorf("close inside a scan: %v", err)
		}
	}
	must(t, s.Close())
	for _, err := range kv.All() {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("scan after close: %v", err)
		}
	}
}

// What Register has written is on the disk after a Sync, also in a task with a store of the
// program's own, which Register takes the point of.
func TestSyncAfterRegisterWithAnOwnStore(t *testing.T) {
	for _, manages := range []bool{true, false} {
		fs := newCrashFS()
		file, err := openFileStore(fs, "files/own", manages)
		must(t, err)
		s := openStore(t, "t", memOptions(fs))
		must(t, s.StampOwner(Owner{ProcessID: "p", Last: time.UnixMilli(1)}))
		must(t, s.Register(countsSpec, Spec{Name: "own", Kind: KindKeyValue, Changelog: "app-own-changelog", Store: file}))
		must(t, s.Sync())
		clone := openStore(t, "t", memOptions(fs.CrashClone(vfs.CrashCloneCfg{})))
		states, err := clone.Stores()
		must(t, err)
		if len(states) != 2 || clone.Owner().ProcessID != "p" {
			t.Errorf("manages offsets %t: after a power loss %d stores, owner %+v", manages, len(states), clone.Owner())
		}
	}
}

// Stores may be registered while a background sync is under way. Run it with -race.
func TestSyncWhileStoresAreRegistered(t *testing.T) {
	for _, own := range []bool{false, true} {
		fs, spec := newCrashFS(), memorySpec
		if own {
			file, err := openFileStore(fs, "files/own", true)
			must(t, err)
			spec = Spec{Name: "own", Kind: KindKeyValue, Changelog: "app-own-changelog", Store: file}
		}
		s, err := Open("t", memOptions(fs))
		must(t, err)
		must(t, s.StampOwner(Owner{"p", time.UnixMilli(5)})) // something to sync
		synced := make(chan error, 1)
		go func() { synced <- s.Sync() }()
		must(t, s.Register(spec))
		must(t, <-synced)
		if len(s.besides()) != 1 {
			t.Errorf("%d engines are beside the database", len(s.besides()))
		}
		must(t, s.Close())
	}
}
