package statestore

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// kindsScript is a history of commits into every kind: the n-th state is known.
type kindsScript struct {
	acked, begun atomic.Int64
	mu           sync.Mutex
	states       map[int64][]string
}

func (c *kindsScript) specs() []Spec { return kindSpecs[:5] }

// dump is what reads show of all stores, and their clocks.
func (c *kindsScript) dump(s *TaskStore) (all []string) {
	for i, p := range c.specs() {
		st := s.registered()[i]
		all = append(all, fmt.Sprintf("%s %+v", p.Name, st.clock))
		add := func(key []byte, from, to int64, value []byte, err error) {
			all = append(all, fmt.Sprint(string(key), from, to, string(value), err))
		}
		switch {
		case st.session != nil:
			for e, err := range st.session.All() {
				add(e.Key, e.Start, e.End, e.Value, err)
			}
		case st.versioned != nil:
			for v, err := range st.versioned.All() {
				add(v.Key, v.From, v.To, v.Value, err)
			}
		default:
			for e, err := range st.window.All() {
				add(e.Key, e.Start, e.Timestamp, e.Value, err)
			}
		}
	}
	return all
}

func (c *kindsScript) write(t fataler, s *TaskStore, n int64) {
	t.Helper()
	at := n * 30_000 // two commits a segment
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range c.specs() {
		st := s.storeNamed(t, p.Name)
		for i := range int64(5) {
			key, value := fmt.Append(nil, i%2), fmt.Append(nil, n, i)
			switch {
			case st.session != nil:
				check(st.session.Put(key, value, at, at+i, at))
				check(st.session.Remove(key, at-30_000, at-30_000+1, at))
			case st.versioned != nil:
				_, err := st.versioned.Put(key, value, at/20+(i*7)%5)
				check(err)
			default:
				check(st.window.Put(key, value, at+i, at))
				check(st.window.Put(key, value, max(at-60_000, 0)+i, at)) // late
			}
		}
	}
}

func (c *kindsScript) run(t fataler, dir string, o Options, commits int64) {
	t.Helper()
	s, err := Open(dir, o)
	if err == nil {
		err = s.Register(c.specs()...)
	}
	for n := int64(1); n <= commits && err == nil; n++ {
		c.write(t, s, n)
		c.mu.Lock()
		c.states[n] = c.dump(s)
		c.mu.Unlock()
		c.begun.Store(n)
		var x *Sealed
		if x, err = s.Seal(Progress{ID: CommitID{1, n}}); err == nil {
			err = s.Commit(x, nil)
			s.Release(x)
		}
		if err == nil && n%4 == 0 {
			if err = s.Sync(); err == nil {
				c.acked.Store(n)
			}
		}
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.acked.Store(commits)
}

// TestKindsAfterCrash lets the power fail at every write: what is recovered is the state after one
// commit, of all kinds, with the clocks that belong to it.
func TestKindsAfterCrash(t *testing.T) {
	t.Parallel()
	rng := testseed.New(t)
	c := &kindsScript{states: map[int64][]string{}}
	fs := newCrashFS()
	var mu sync.Mutex
	seen := map[int64]bool{}
	o := memOptions(errorfs.Wrap(fs, onWrite(func(i int64) error {
		mu.Lock()
		defer mu.Unlock()
		if i%every != 0 {
			return nil
		}
		acked := c.acked.Load()
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		begun := c.begun.Load()
		s, err := Open("t", memOptions(clone))
		if err == nil {
			err = s.Register(c.specs()...)
		}
		if err != nil {
			t.Errorf("write %d: %v", i, err)
			return nil
		}
		defer s.Close()
		n := s.CommitID().Number
		if n < acked || n > begun {
			t.Errorf("write %d: recovered commit %d; acknowledged %d, begun %d", i, n, acked, begun)
		}
		c.mu.Lock()
		want := c.states[n]
		c.mu.Unlock()
		if got := c.dump(s); n > 0 && !slices.Equal(got, want) {
			t.Errorf("write %d, commit %d:\n got %.2000v\nwant %.2000v", i, n, got, want)
		}
		seen[n] = true
		return nil
	})))
	c.run(t, "t", o, 100)
	t.Logf("%d different commits recovered", len(seen))
	if len(seen) < 10/every {
		t.Errorf("crashes hit only %d commits", len(seen))
	}
}
