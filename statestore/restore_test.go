package statestore

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func record(key, value string, timestamp int64) RestoreRecord {
	r := RestoreRecord{Key: []byte(key), Timestamp: timestamp}
	if value != "nil" {
		r.Value = []byte(value)
	}
	return r
}

func state(t testing.TB, s *TaskStore, name string) StoreState {
	t.Helper()
	states, err := s.Stores()
	must(t, err)
	for _, st := range states {
		if st.Spec.Name == name {
			return st
		}
	}
	t.Fatalf("no store %q", name)
	return StoreState{}
}

func TestRestoreIsResumable(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	must(t, s.Restore("latest", []RestoreRecord{record("a", "1", 10), record("b", "1", 11), record("a", "2", 12), record("b", "nil", 13)}, 4))
	if st := state(t, s, "latest"); st.Complete || st.Offset != At(4) {
		t.Errorf("in the middle of a restore: %+v", st)
	}
	if _, err := s.Seal(Progress{}); err == nil || !strings.Contains(err.Error(), `"latest" is only partly restored (at 4)`) {
		t.Errorf("seal in the middle of a restore: %v", err)
	}
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	if st := state(t, s, "latest"); st.Complete || st.Offset != At(4) || st.Empty {
		t.Errorf("after a restart in the middle: %+v", st)
	}
	kv := handle(t, s, "latest")
	if v, ts, ok, err := kv.Get([]byte("a")); err != nil || !ok || string(v) != "2" || ts != 12 {
		t.Errorf("restored: %q at %d, %v, %v", v, ts, ok, err)
	}
	wantAbsent(t, kv, "b")
	if err := s.Restore("latest", nil, 3); err == nil || !strings.Contains(err.Error(), "offset 3 is before the store's, 4") {
		t.Errorf("restore backwards: %v", err)
	}
	// What was read before must not hide what is restored.
	must(t, s.Restore("latest", []RestoreRecord{record("a", "3", 14), record("b", "", 15)}, 6))
	wantValue(t, kv, "a", "3")
	wantValue(t, kv, "b", "")
	must(t, s.Complete(Progress{ID: CommitID{4, 9}, StreamTime: 15, Positions: []Position{{"in", 0, 100}}}, map[string]Offset{"latest": At(8)}))
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	for _, name := range []string{"latest", "counts"} {
		if st := state(t, s, name); !st.Complete {
			t.Errorf("%s is not complete after Complete", name)
		}
	}
	if s.CommitID() != (CommitID{4, 9}) || s.StreamTime() != 15 || s.Positions()[0].Next != 100 || s.CommittedOffsets()["latest"] != At(8) {
		t.Errorf("commit %v, stream time %d, positions %v, offsets %v", s.CommitID(), s.StreamTime(), s.Positions(), s.CommittedOffsets())
	}
	commit(t, s, Progress{ID: CommitID{5, 1}}, nil)
}

func TestRestoreNeedsACleanOverlay(t *testing.T) { onEngines(t, testRestoreNeedsACleanOverlay) }

func testRestoreNeedsACleanOverlay(t *testing.T, o Options) {
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	must(t, kv.Put([]byte("k"), []byte("v"), 1))
	check := func(want error) {
		t.Helper()
		for name, err := range map[string]error{
			"restore": s.Restore("counts", nil, 1), "clear": s.Clear("counts"), "complete": s.Complete(Progress{}, nil),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v", name, err, want)
			}
		}
	}
	check(ErrUncommitted)
	x, err := s.Seal(Progress{})
	must(t, err)
	check(ErrSealed)
	must(t, s.Commit(x, nil))
	check(ErrSealed)
	s.Release(x)
	must(t, s.Restore("counts", nil, 1))
	if err := s.Restore("other", nil, 1); err == nil || !strings.Contains(err.Error(), `"other" was not registered`) {
		t.Errorf("unknown store: %v", err)
	}
}

func TestClearBeginsAnew(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	counts, latest := handle(t, s, "counts"), handle(t, s, "latest")
	must(t, counts.Put([]byte("k"), []byte("v"), 1))
	must(t, latest.Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(7), "latest": CleanUnknown()})
	if o := s.CommittedOffsets()["latest"]; !o.IsUnknown() {
		t.Errorf("offset %v; want clean, unknown", o)
	}
	must(t, s.Clear("counts"))
	wantAbsent(t, counts, "k")
	wantValue(t, latest, "k", "v")
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	if st := state(t, s, "counts"); st.Complete || !st.Offset.IsAbsent() || !st.Empty {
		t.Errorf("after a clear: %+v", st)
	}
	if st := state(t, s, "latest"); !st.Complete || !st.Offset.IsUnknown() || st.Empty {
		t.Errorf("the other store: %+v", st)
	}
	wantAbsent(t, handle(t, s, "counts"), "k")
	must(t, s.Restore("counts", []RestoreRecord{record("z", "1", 1)}, 1)) // from the start again
}

func TestOffset(t *testing.T) {
	for _, c := range []struct {
		o       Offset
		text    string
		next    int64
		ok      bool
		absent  bool
		unknown bool
	}{
		{Offset{}, "absent", 0, false, true, false},
		{CleanUnknown(), "clean, unknown", 0, false, false, true},
		{At(0), "at 0", 0, true, false, false},
		{At(12), "at 12", 12, true, false, false},
	} {
		next, ok := c.o.Next()
		if c.o.String() != c.text || next != c.next || ok != c.ok || c.o.IsAbsent() != c.absent || c.o.IsUnknown() != c.unknown {
			t.Errorf("%v: next %d, %v, absent %v, unknown %v", c.o, next, ok, c.o.IsAbsent(), c.o.IsUnknown())
		}
	}
	if (CommitID{1, 9}).Compare(CommitID{2, 0}) != -1 || (CommitID{2, 1}).Compare(CommitID{2, 0}) != 1 || (CommitID{}).String() != "none" {
		t.Error("commit ids do not compare by epoch, then number")
	}
}
