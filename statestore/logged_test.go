package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// loggedSpecs are every kind of store.
func loggedSpecs() []Spec { return append(slices.Clone(kindSpecs[:5]), countsSpec, latestSpec) }

// writeRandomly writes into every kind: out of order, with deletions and rewrites.
func writeRandomly(t *testing.T, s *TaskStore, rng *rand.Rand, now int64) {
	t.Helper()
	for range 30 {
		key, value, late := fmt.Append(nil, "k", rng.IntN(12)), fmt.Append(nil, rng.Uint32()), now-rng.Int64N(8000)
		if rng.IntN(4) == 0 {
			value = nil
		} else if rng.IntN(10) == 0 {
			value = []byte{}
		}
		late = max(late, 0)
		for _, name := range []string{"counts", "latest"} {
			if value == nil {
				must(t, handle(t, s, name).Delete(key, now))
			} else {
				must(t, handle(t, s, name).Put(key, value, late))
			}
		}
		for _, p := range kindSpecs[:5] {
			st := s.storeNamed(t, p.Name)
			switch {
			case st.session != nil && value != nil:
				must(t, st.session.Put(key, value, late, late+rng.Int64N(50), late))
			case st.versioned != nil:
				_, err := st.versioned.Put(key, value, late)
				must(t, err)
			case st.window != nil:
				must(t, st.window.Put(key, value, late, late+3))
			}
		}
	}
}

// shownContent is what reads show, and of versions what was valid at every time.
func shownContent(t *testing.T, s *TaskStore) (all []string) {
	t.Helper()
	for _, name := range []string{"counts", "latest"} {
		for e, err := range handle(t, s, name).All() {
			must(t, err)
			all = append(all, fmt.Sprint(name, string(e.Key), string(e.Value), e.Timestamp))
		}
	}
	for _, line := range (&kindsScript{}).dump(s) {
		if strings.HasPrefix(line, "versions ") { // those that ended before the history may be there or not
			break
		}
		if !bytes.Contains([]byte(line), []byte("{Known")) { // the clock, which may be that of a deleted entry
			all = append(all, line)
		}
	}
	v := s.storeNamed(t, "versions").versioned
	for i := range 12 {
		last := ""
		for at := max(0, v.StreamTime()-v.History()); at <= v.StreamTime()+10; at += 3 {
			x, ok, err := v.GetAsOf(fmt.Append(nil, "k", i), at)
			must(t, err)
			if now := fmt.Sprint("k", i, ok, string(x.Value), x.From); now != last {
				all, last = append(all, fmt.Sprint(at, now)), now
			}
		}
	}
	return all
}

// copyLogged restores what Logged gives into a new store, behind what the log still held.
func copyLogged(t *testing.T, s *TaskStore, held map[string][]RestoreRecord) *TaskStore {
	t.Helper()
	to := openStore(t, "copy", memOptions(vfs.NewMem()), loggedSpecs()...)
	for _, p := range loggedSpecs() {
		log := held[p.Name]
		again := func(yield func(RestoreRecord, error) bool) {
			for _, r := range held[p.Name] {
				if !yield(r, nil) {
					return
				}
			}
		}
		for c, err := range s.Logged(p.Name, again) {
			must(t, err)
			if c.Store != p.Name || c.Timestamp < 0 {
				t.Fatalf("record %+v of store %s", c, p.Name)
			}
			log = append(log, RestoreRecord{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Timestamp: c.Timestamp})
		}
		for next := int64(0); len(log) > 0; {
			n := min(len(log), 17)
			next += int64(n)
			must(t, to.Restore(p.Name, log[:n], next))
			log = log[n:]
		}
	}
	must(t, to.Complete(Progress{ID: CommitID{1, 1}}, nil))
	return to
}

func sameContent(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d of %d and %d differs:\n%v\nwant\n%v", i, len(got), len(want), got[min(i, len(got)):min(i+3, len(got))], want[min(i, len(want)):min(i+3, len(want))])
		}
	}
}

// Whatever a store of any kind has gone through, its content comes back from the records that it gives, into an
// empty log and behind one that has lost its end.
func TestLoggedRestoresTheStore(t *testing.T) {
	rng := testseed.New(t)
	room := versionSortBytes
	defer func() { versionSortBytes = room }()
	versionSortBytes = 2000 // several passes
	s := openStore(t, "t", memOptions(vfs.NewMem()), loggedSpecs()...)
	held := map[string][]RestoreRecord{}
	for n := int64(1); n <= 40; n++ {
		writeRandomly(t, s, rng, n*2500)
		x, err := s.Seal(Progress{ID: CommitID{1, n}, StreamTime: n * 2500})
		must(t, err)
		if n <= 25 {
			for c := range x.Changes() {
				held[c.Store] = append(held[c.Store], RestoreRecord{Key: bytes.Clone(c.Key), Value: clone(c.Value), Timestamp: c.Timestamp})
			}
		}
		must(t, s.Commit(x, nil))
		s.Release(x)
	}
	want := shownContent(t, s)
	sameContent(t, shownContent(t, copyLogged(t, s, nil)), want)
	sameContent(t, shownContent(t, copyLogged(t, s, held)), want)
}

// A key that was not touched since the history began to reach back less far is not lost: restored behind newer
// ones it would be too old.
func TestLoggedVersionsFromBeforeTheHistory(t *testing.T) {
	s := openStore(t, "t", memOptions(vfs.NewMem()), loggedSpecs()...)
	v := s.storeNamed(t, "versions").versioned
	for i, at := range []int64{30, 20, 10, 900_000} { // "k0" is the oldest row, but not the oldest version
		_, err := v.Put(fmt.Append(nil, "k", i), []byte("x"), at)
		must(t, err)
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	got := copyLogged(t, s, nil).storeNamed(t, "versions").versioned
	for i := range 4 {
		if _, ok, err := got.Get(fmt.Append(nil, "k", i)); !ok || err != nil {
			t.Errorf("k%d is gone: %v", i, err)
		}
	}
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// A store whose offset is in doubt is as complete as it was, also after a restart, wherever its rows are.
func TestDoubt(t *testing.T) {
	fs := vfs.NewMem()
	open := func() *TaskStore {
		t.Helper()
		o := memOptions(fs)
		s := openStore(t, "t", o) // before the others: it makes the directory
		own, err := openFileStore(fs, "t/own", true)
		must(t, err)
		wrapped, err := openFileStore(fs, "t/wrapped", false)
		must(t, err)
		specs := []Spec{countsSpec, ownSpec, wrappedSpec, latestSpec}
		specs[1].Store, specs[2].Store = own, wrapped
		must(t, s.Register(specs...))
		return s
	}
	s := open()
	offsets := map[string]Offset{}
	for _, name := range []string{"counts", "own", "wrapped"} {
		must(t, handle(t, s, name).Put([]byte("k"), []byte("v"), 1))
		offsets[name] = At(5)
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, offsets)
	must(t, s.Restore("latest", []RestoreRecord{record("k", "v", 1)}, 3)) // not complete
	check := func() {
		t.Helper()
		for name := range offsets {
			if x := state(t, s, name); !x.Complete || !x.Offset.IsUnknown() {
				t.Errorf("store %s: complete %v, offset %v", name, x.Complete, x.Offset)
			}
			wantValue(t, handle(t, s, name), "k", "v")
		}
		if x := state(t, s, "latest"); x.Complete || x.Offset != At(3) {
			t.Errorf("store latest: complete %v, offset %v", x.Complete, x.Offset)
		}
		if s.CommitID() != (CommitID{1, 1}) {
			t.Errorf("commit %v", s.CommitID())
		}
	}
	must(t, s.Doubt("counts", "own", "wrapped"))
	check()
	must(t, s.Sync())
	must(t, s.Close())
	s = open()
	check()
	if err := s.Doubt("nowhere"); err == nil {
		t.Error("no error for a store that was not registered")
	}
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("w"), 1))
	if err := s.Doubt("counts"); !errors.Is(err, ErrUncommitted) {
		t.Errorf("with uncommitted writes: %v", err)
	}
}
