package statestore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// script is a history of commits whose n-th state is known: what a crash or a failure
// leaves must be one of its states, whole.
type script struct {
	commits int
	big     int // every so many commits write a lot, so that tables are flushed
	// acked is the last commit that Sync (or Close) acknowledged; begun the last that was tried.
	acked, begun atomic.Int64
}

// values gives the state after commit n, in both stores the same.
func (c *script) values(n int) map[string]string {
	m := map[string]string{}
	for i := 1; i <= n; i++ {
		maps.Copy(m, c.writes(i))
		delete(m, fmt.Sprintf("once-%d", i-1))
	}
	return m
}

func (c *script) writes(n int) map[string]string {
	m := map[string]string{"n": strconv.Itoa(n), fmt.Sprintf("once-%d", n): "x", fmt.Sprintf("mod-%d", n%7): strconv.Itoa(n)}
	if c.big > 0 && n%c.big == 0 {
		r := rand.New(rand.NewPCG(uint64(n), 0)) // not compressible
		b := make([]byte, 12<<10)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for i := range 4 {
			m[fmt.Sprintf("big-%d", i)] = string(b)
		}
	}
	return m
}

// run opens, commits, syncs now and then, closes in the middle, and goes on.
func (c *script) run(dir string, o Options) (err error) {
	s, err := c.open(dir, o)
	if err != nil {
		return err
	}
	// A deferred Close also of a store that failed: it must come back.
	defer func() { err = errors.Join(err, s.Close()) }()
	for n := int(s.CommitID().Number) + 1; n <= c.commits; n++ {
		if n == c.commits/2 {
			if err := s.Close(); err != nil {
				return err
			}
			c.acked.Store(int64(n - 1))
			again, err := c.open(dir, o)
			if err != nil {
				return err
			}
			s = again
		}
		if err := c.commit(s, n); err != nil {
			return err
		}
		if n%5 == 0 {
			if err := s.Sync(); err != nil {
				return err
			}
			c.acked.Store(int64(n))
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	c.acked.Store(int64(c.commits))
	return nil
}

func (c *script) open(dir string, o Options) (*TaskStore, error) {
	s, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.Register(countsSpec, latestSpec); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (c *script) commit(s *TaskStore, n int) error {
	for _, name := range []string{"counts", "latest"} {
		kv, err := s.KeyValue(name)
		if err != nil {
			return err
		}
		for k, v := range c.writes(n) {
			if err := kv.Put([]byte(k), []byte(v), int64(n)); err != nil {
				return err
			}
		}
		if err := kv.Delete(fmt.Appendf(nil, "once-%d", n-1), int64(n)); err != nil {
			return err
		}
	}
	x, err := s.Seal(Progress{ID: CommitID{1, int64(n)}, StreamTime: int64(n), Positions: []Position{{"in", 0, int64(n)}}})
	if err != nil {
		return err
	}
	c.begun.Store(int64(n))
	if err := s.Commit(x, map[string]Offset{"counts": At(int64(n)), "latest": At(int64(2 * n))}); err != nil {
		return err
	}
	s.Release(x)
	return nil
}

// verify opens what is left and compares it with the state of the commit it says it is.
func (c *script) verify(dir string, o Options) (n int64, err error) {
	s, err := c.open(dir, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n = s.CommitID().Number
	want := c.values(int(n))
	for _, name := range []string{"counts", "latest"} {
		kv, err := s.KeyValue(name)
		if err != nil {
			return n, err
		}
		got := map[string]string{}
		for e, err := range kv.All() {
			if err != nil {
				return n, err
			}
			got[string(e.Key)] = string(e.Value)
		}
		if !maps.Equal(got, want) {
			return n, fmt.Errorf("%s at commit %d holds %s; want %s", name, n, brief(got), brief(want))
		}
	}
	if n > 0 {
		offsets, positions := s.CommittedOffsets(), s.Positions()
		if offsets["counts"] != At(n) || offsets["latest"] != At(2*n) || len(positions) != 1 || positions[0].Next != n || s.StreamTime() != n {
			return n, fmt.Errorf("at commit %d: offsets %v, positions %v, stream time %d", n, offsets, positions, s.StreamTime())
		}
	}
	if s.DurableOffsets()["counts"] != s.CommittedOffsets()["counts"] {
		return n, errors.New("what was recovered is not durable")
	}
	return n, nil
}

func brief(m map[string]string) string {
	var b strings.Builder
	for k, v := range m {
		fmt.Fprintf(&b, "%s=%.6s ", k, v)
	}
	return b.String()
}

// onWrite calls fn with the number of each operation that changes the file system.
func onWrite(fn func(i int64) error) errorfs.Injector {
	var n atomic.Int64
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		return fn(n.Add(1))
	})
}
