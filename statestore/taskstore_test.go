package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestCommitSurvivesReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "app", "0_0")
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec)
	if !s.OpenStats().Created {
		t.Error("the first open did not say that it created the database")
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v; want mode 0700", fi.Mode(), err)
	}
	counts, latest := handle(t, s, "counts"), handle(t, s, "latest")
	must(t, counts.Put([]byte("a"), []byte("1"), 100))
	must(t, counts.Put(nil, []byte("empty key"), 101))
	must(t, counts.Put([]byte("b"), []byte{}, 102))
	must(t, latest.Put([]byte("a"), []byte("x"), 1234))
	id := CommitID{Epoch: 3, Number: 7}
	commit(t, s, Progress{ID: id, StreamTime: 1234, Positions: []Position{{"in", 1, 20}, {"in", 0, 10}}},
		map[string]Offset{"counts": At(3), "latest": At(1)})
	must(t, counts.Put([]byte("c"), []byte("uncommitted"), 103))
	must(t, s.Close())
	must(t, s.Close())
	if err := counts.Put([]byte("c"), nil, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("put after close: %v; want ErrClosed", err)
	}

	s = openStore(t, dir, Options{Logger: quiet()}, countsSpec, latestSpec)
	if st := s.OpenStats(); st.Created || st.ReplayedBatches != 0 {
		t.Errorf("after a clean close: %+v; want nothing created or replayed", st)
	}
	counts, latest = handle(t, s, "counts"), handle(t, s, "latest")
	wantValue(t, counts, "b", "") // from the database, then from the cache
	wantValue(t, counts, "b", "")
	wantValue(t, counts, "a", "1")
	wantValue(t, counts, "", "empty key")
	wantValue(t, counts, "b", "")
	wantAbsent(t, counts, "c")
	if v, ts, ok, err := latest.Get([]byte("a")); err != nil || !ok || string(v) != "x" || ts != 1234 {
		t.Errorf("timestamped get = %q at %d, %v, %v", v, ts, ok, err)
	}
	if s.CommitID() != id || s.StreamTime() != 1234 {
		t.Errorf("commit %v, stream time %d", s.CommitID(), s.StreamTime())
	}
	if got := s.Positions(); !slices.Equal(got, []Position{{"in", 0, 10}, {"in", 1, 20}}) {
		t.Errorf("positions %v", got)
	}
	if o := s.CommittedOffsets(); o["counts"] != At(3) || o["latest"] != At(1) || len(o) != 2 {
		t.Errorf("offsets %v", o)
	}
}

func TestPositionsMergeAndStreamTimeNeverGoesBack(t *testing.T) {
	onEngines(t, testPositionsMergeAndStreamTimeNeverGoesBack)
}

func testPositionsMergeAndStreamTimeNeverGoesBack(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	if s.StreamTime() != NoStreamTime {
		t.Fatalf("stream time of a new store: %d", s.StreamTime())
	}
	commit(t, s, Progress{ID: CommitID{1, 1}, StreamTime: 50, Positions: []Position{{"a", 0, 5}, {"b", 0, 6}}}, nil)
	commit(t, s, Progress{ID: CommitID{1, 2}, StreamTime: 40, Positions: []Position{{"a", 0, 9}, {"a", 3, 1}}}, nil)
	commit(t, s, Progress{ID: CommitID{2, 1}, StreamTime: NoStreamTime}, nil)
	if got := s.Positions(); !slices.Equal(got, []Position{{"a", 0, 9}, {"a", 3, 1}, {"b", 0, 6}}) {
		t.Errorf("positions %v", got)
	}
	if s.StreamTime() != 50 {
		t.Errorf("stream time %d; want 50", s.StreamTime())
	}
	if _, err := s.Seal(Progress{ID: CommitID{2, 1}}); err == nil || !strings.Contains(err.Error(), "not after the last one, 2/1") {
		t.Errorf("seal with an id given before: %v", err)
	}
}

func TestOnlyOneSealed(t *testing.T) { onEngines(t, testOnlyOneSealed) }

func testOnlyOneSealed(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	must(t, kv.Put([]byte("k"), []byte("1"), 1))
	x, err := s.Seal(Progress{ID: CommitID{1, 1}})
	must(t, err)
	must(t, kv.Put([]byte("k"), []byte("2"), 2))
	if _, err := s.Seal(Progress{ID: CommitID{1, 2}}); !errors.Is(err, ErrSealed) {
		t.Fatalf("second seal: %v; want ErrSealed", err)
	}
	s.Release(x) // not committed: nothing happens
	if _, err := s.Seal(Progress{ID: CommitID{1, 2}}); !errors.Is(err, ErrSealed) {
		t.Fatalf("second seal after a release that was too early: %v; want ErrSealed", err)
	}
	wantValue(t, kv, "k", "2")
	for c := range x.Changes() {
		if string(c.Value) != "1" || c.Timestamp != 1 || c.Store != "counts" {
			t.Errorf("sealed change %+v", c)
		}
	}
	must(t, s.Commit(x, nil))
	if err := s.Commit(x, nil); err == nil {
		t.Error("the same interval was committed twice")
	}
	s.Release(x)
	wantValue(t, kv, "k", "2")
	commit(t, s, Progress{ID: CommitID{1, 2}}, nil)
	wantValue(t, kv, "k", "2")
}

func TestDropGoesBackToTheLastCommit(t *testing.T) { onEngines(t, testDropGoesBackToTheLastCommit) }

func testDropGoesBackToTheLastCommit(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	must(t, kv.Put([]byte("k"), []byte("1"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(1)})
	must(t, kv.Put([]byte("k"), []byte("2"), 2))
	x, err := s.Seal(Progress{ID: CommitID{1, 2}})
	must(t, err)
	var held Change
	for c := range x.Changes() {
		held = c
	}
	must(t, kv.Put([]byte("k"), []byte("3"), 3))
	must(t, kv.Put([]byte("new"), []byte("3"), 3))
	s.Drop()
	wantValue(t, kv, "k", "1")
	wantAbsent(t, kv, "new")
	if err := s.Commit(x, nil); err == nil || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("commit of a dropped interval: %v", err)
	}
	if s.CommitID() != (CommitID{1, 1}) || s.DirtyBytes() != 0 {
		t.Errorf("after drop: commit %v, %d dirty bytes", s.CommitID(), s.DirtyBytes())
	}
	// A client may still hold slices of the dropped interval.
	must(t, kv.Put([]byte("k"), []byte("4"), 4))
	commit(t, s, Progress{ID: CommitID{1, 2}}, nil)
	if string(held.Value) != "2" {
		t.Errorf("a slice of the dropped interval became %q", held.Value)
	}
	wantValue(t, kv, "k", "4")
}

func TestChangesAreSortedByStoreAndKey(t *testing.T) { onEngines(t, testChangesAreSortedByStoreAndKey) }

func testChangesAreSortedByStoreAndKey(t *testing.T, o Options) {
	s := openStore(t, "t", o, latestSpec, countsSpec)
	counts, latest := handle(t, s, "counts"), handle(t, s, "latest")
	for i := range 300 {
		must(t, counts.Put(fmt.Appendf(nil, "key-%03d", (i*7)%300), fmt.Append(nil, i), int64(i)))
	}
	must(t, latest.Put([]byte("z"), []byte("v"), 42))
	must(t, latest.Put([]byte("a"), []byte{}, 43))
	must(t, latest.Delete([]byte("m"), 44))
	must(t, counts.Delete([]byte("key-000"), 45))
	x, err := s.Seal(Progress{ID: CommitID{1, 1}})
	must(t, err)
	var got []string
	for c := range x.Changes() {
		v := "nil"
		if c.Value != nil {
			v = "=" + string(c.Value)
		}
		got = append(got, fmt.Sprintf("%s/%s%s@%d", c.Store, c.Key, v, c.Timestamp))
	}
	if x.Len() != 303 || len(got) != 303 {
		t.Fatalf("%d changes, Len %d; want 303", len(got), x.Len())
	}
	want := []string{"latest/a=@43", "latest/mnil@44", "latest/z=v@42", "counts/key-000nil@45", "counts/key-001=43@43"}
	if !slices.Equal(got[:5], want) {
		t.Errorf("first changes %q; want %q", got[:5], want)
	}
	if !slices.IsSorted(got[3:]) {
		t.Error("the changes of a store are not in key order")
	}
}

func TestCommitRejectsWithoutWriting(t *testing.T) { onEngines(t, testCommitRejectsWithoutWriting) }

func testCommitRejectsWithoutWriting(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	must(t, kv.Put([]byte("k"), []byte("1"), 1))
	x, err := s.Seal(Progress{ID: CommitID{1, 1}})
	must(t, err)
	if err := s.Commit(x, map[string]Offset{"count": At(1)}); err == nil || !strings.Contains(err.Error(), `"count" was not registered`) {
		t.Errorf("unknown store: %v", err)
	}
	if err := s.Commit(x, map[string]Offset{"counts": At(-4)}); err == nil || !strings.Contains(err.Error(), "negative offset -4") {
		t.Errorf("negative offset: %v", err)
	}
	if err := s.Commit(nil, nil); err == nil {
		t.Error("commit of nothing was accepted")
	}
	must(t, s.Commit(x, map[string]Offset{"counts": At(1)}))
	s.Release(x)
	for _, p := range []Progress{
		{Positions: []Position{{"", 0, 1}}}, {Positions: []Position{{"t", -1, 1}}}, {Positions: []Position{{"t", 0, -1}}}, {ID: CommitID{-1, 0}},
	} {
		if _, err := s.Seal(p); err == nil {
			t.Errorf("seal took %+v", p)
		}
	}
}

func TestRegister(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	if err := s.Register(latestSpec); err == nil {
		t.Error("a second Register was accepted")
	}
	if _, err := s.KeyValue("other"); err == nil || !strings.Contains(err.Error(), `"other" was not registered`) {
		t.Errorf("unknown store: %v", err)
	}
	must(t, s.Close())

	for _, bad := range []struct {
		specs []Spec
		want  string
	}{
		{[]Spec{{Kind: KindKeyValue}}, "without a name"},
		{[]Spec{{Name: "x"}}, "unknown kind 0"},
		{[]Spec{latestSpec, latestSpec}, "declared twice"},
		{[]Spec{{Name: "counts", Kind: KindTimestampedKeyValue}}, "key-value store with serdes (string, int64) in the database and a timestamped"},
		{[]Spec{{Name: "counts", Kind: KindKeyValue, ValueSerde: "json"}}, "(not said, json)"},
	} {
		s := openStore(t, "t", memOptions(fs))
		if err := s.Register(bad.specs...); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("register %+v: %v; want %q", bad.specs, err, bad.want)
		}
		if _, err := s.Seal(Progress{}); err == nil {
			t.Error("seal worked without registered stores")
		}
		must(t, s.Close())
	}
}

func TestStoreNotRegisteredLosesItsOffset(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	must(t, handle(t, s, "latest").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(1), "latest": At(2)})
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec)
	if o := s.CommittedOffsets(); o["latest"] != At(2) {
		t.Errorf("before a commit: %v", o)
	}
	commit(t, s, Progress{ID: CommitID{1, 2}}, map[string]Offset{"counts": At(5)})
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), latestSpec, countsSpec)
	states, err := s.Stores()
	must(t, err)
	if st := states[1]; st.Spec.Name != "latest" || st.Complete || !st.Offset.IsAbsent() || st.Empty {
		t.Errorf("latest after a run without it: %+v", st)
	}
	if st := states[0]; st.Spec.Name != "counts" || !st.Complete || st.Offset != At(5) || !st.Empty {
		t.Errorf("counts: %+v", st)
	}
}

func TestChangelogIdentity(t *testing.T) {
	fs := vfs.NewMem()
	old, fresh := countsSpec, countsSpec
	old.ChangelogID[0], fresh.ChangelogID[0] = 1, 2
	s := openStore(t, "t", memOptions(fs), countsSpec)
	must(t, s.Close())
	recorded := func(declared Spec, then func(*TaskStore) error) [16]byte {
		t.Helper()
		s := openStore(t, "t", memOptions(fs), declared)
		states, err := s.Stores()
		must(t, err)
		if states[0].Spec != declared {
			t.Errorf("spec %+v; want the declared %+v", states[0].Spec, declared)
		}
		if then != nil {
			must(t, then(s))
		}
		must(t, s.Close())
		return states[0].Recorded.ChangelogID
	}
	recorded(old, nil) // an id that was not known is entered
	if got := recorded(fresh, nil); got != old.ChangelogID {
		t.Errorf("recorded %v; want the first id", got)
	}
	recorded(fresh, func(s *TaskStore) error { return s.Clear("counts") })
	if got := recorded(old, func(s *TaskStore) error { return s.Adopt("counts") }); got != fresh.ChangelogID {
		t.Errorf("recorded %v after a clear; want the new id", got)
	}
	if got := recorded(fresh, nil); got != old.ChangelogID {
		t.Errorf("recorded %v after adopt; want the adopted id", got)
	}
}

func TestValidate(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
	err := Options{SyncInterval: -1, MaxDirtyBytes: -1, MemTableBytes: 5}.Validate()
	for _, want := range []string{"SyncInterval", "MaxDirtyBytes", "MemTableBytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if _, err := Open("t", Options{SyncInterval: -1}); err == nil {
		t.Error("open took bad options")
	}
	if _, err := NewResources(ResourceOptions{Syncs: -1}); err == nil {
		t.Error("bad resources were accepted")
	}
}

func TestSharedResources(t *testing.T) {
	r, err := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20})
	must(t, err)
	fs := vfs.NewMem()
	o := memOptions(fs)
	o.Resources = r
	a, b := openStore(t, "a", o, countsSpec), openStore(t, "b", o, countsSpec)
	must(t, handle(t, a, "counts").Put([]byte("k"), []byte("a"), 1))
	commit(t, a, Progress{}, nil)
	wantAbsent(t, handle(t, b, "counts"), "k")
	must(t, a.Close())
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "1 task stores are open") {
		t.Errorf("close of resources in use: %v", err)
	}
	must(t, b.Close())
	must(t, r.Close())
}

// A process may hold a thousand task stores: Pebble's own two goroutines each, no timer.
func TestIdleStoresAreCheap(t *testing.T) {
	r, err := NewResources(ResourceOptions{})
	must(t, err)
	// In memory, because the descriptors of so many may not be allowed.
	o := Options{Resources: r, Logger: quiet(), SyncInterval: time.Millisecond, FS: vfs.NewMem()}
	const n = 200
	var stores []*TaskStore
	before := runtime.NumGoroutine()
	for i := range n {
		s := openStore(t, fmt.Sprintf("0_%d", i), o, countsSpec)
		must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
		commit(t, s, Progress{}, map[string]Offset{"counts": At(1)})
		stores = append(stores, s)
	}
	for _, s := range stores {
		eventually(t, "synced", func() bool { return s.DurableOffsets()["counts"] == At(1) })
	}
	eventually(t, "at most 2 goroutines for each store", func() bool { return runtime.NumGoroutine()-before <= 2*n })
	if size := stores[0].CacheBytes(); size > 16<<10 {
		t.Errorf("the table of a store with one entry takes %d bytes", size)
	}
	for _, s := range stores {
		must(t, s.Close())
	}
	must(t, r.Close())
}

func TestOverlayBound(t *testing.T) { onEngines(t, testOverlayBound) }

func testOverlayBound(t *testing.T, o Options) {
	o.MaxDirtyBytes = 1000
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	n := 0
	for ; !s.NeedsCommit(); n++ {
		must(t, kv.Put(fmt.Append(nil, n), make([]byte, 50), 1))
		must(t, kv.Put([]byte("same"), make([]byte, 50), 1)) // written over, counts once
	}
	if n < 5 || n > 20 {
		t.Errorf("%d writes of 50 bytes reached 1000 bytes", n)
	}
	commit(t, s, Progress{}, nil)
	if s.NeedsCommit() || s.DirtyBytes() != 0 {
		t.Errorf("after a commit: %d dirty bytes", s.DirtyBytes())
	}
	if err := kv.Put(make([]byte, 1<<28+1), nil, 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a key over the limit: %v", err)
	}
}

// A file that stayed from the creation would let a damaged database be made anew.
func TestCreationEndsDurably(t *testing.T) {
	fs := newCrashFS()
	openStore(t, "state/t", memOptions(fs), countsSpec)
	names, err := fs.CrashClone(vfs.CrashCloneCfg{}).List("state/t")
	must(t, err)
	if slices.Contains(names, creatingName) || !slices.ContainsFunc(names, isDatabaseFile) {
		t.Errorf("on the disk after Open: %v", names)
	}
}

// A scan reads a sealed interval: committing and releasing it in the loop, and sealing the
// next one, must not change what the loop sees.
func TestScanOutlivesRelease(t *testing.T) { onEngines(t, testScanOutlivesRelease) }

func testScanOutlivesRelease(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	fill := func(v string) {
		for i := range 100 {
			must(t, kv.Put(fmt.Appendf(nil, "%03d", i), []byte(v), 1))
		}
	}
	fill("old")
	x, err := s.Seal(Progress{})
	must(t, err)
	n := 0
	for e, err := range kv.All() {
		must(t, err)
		if string(e.Key) != fmt.Sprintf("%03d", n) || string(e.Value) != "old" {
			t.Fatalf("entry %d is %s=%s", n, e.Key, e.Value)
		}
		if n++; n == 10 {
			must(t, s.Commit(x, nil))
			s.Release(x)
			fill("new")
			commit(t, s, Progress{}, nil)
			fill("NEW")
			commit(t, s, Progress{}, nil)
		}
	}
	if n != 100 {
		t.Errorf("%d entries", n)
	}
	wantValue(t, kv, "050", "NEW")
}
