package statestore

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Sealed is the writes of one interval, fixed: the last write of each key. The owner goes
// on writing into the next interval while another goroutine produces and commits this one.
type Sealed struct {
	s        *TaskStore
	progress Progress
	writes   *table.Sealed
	stores   []*store
	clocks   []kinds.Clock // of the stores
	// committed is set by Commit, dropped by Drop.
	committed, dropped atomic.Bool
}

// Change is one write, as it goes into the changelog. Its slices are valid and unchanged
// until [TaskStore.Release], however long a client holds them.
type Change struct {
	Store      string
	Key, Value []byte // value nil = deleted
	// Timestamp is what was given to Put or Delete, in milliseconds.
	Timestamp int64
	// Schema is the store's Spec.SchemaVersion. It must come back with the record in Restore.
	Schema uint32
}

// Seal ends the running interval: its writes, with the progress of the task at its end,
// are to be committed together. Only one interval can be sealed ([ErrSealed]). Reads go on
// seeing its writes.
func (s *TaskStore) Seal(p Progress) (*Sealed, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if s.stores.Load() == nil {
		return nil, fmt.Errorf("seal %s: no stores were registered", s.dir)
	}
	if s.sealed != nil {
		return nil, fmt.Errorf("seal %s: %w", s.dir, ErrSealed)
	}
	if err := s.mayCommit(p); err != nil {
		return nil, fmt.Errorf("seal %s: %w", s.dir, err)
	}
	p.Positions = append([]Position(nil), p.Positions...)
	s.expire()
	x := &Sealed{s: s, progress: p, writes: s.table.Seal(s.spare), stores: s.registered()}
	x.clocks = clocks(x.stores)
	s.spare, s.sealed = nil, x
	s.tend()
	return x, nil
}

// mayCommit refuses what would make the commit record say something wrong.
func (s *TaskStore) mayCommit(p Progress) error {
	if err := p.validate(); err != nil {
		return err
	}
	last := s.committed.Load()
	if !p.ID.IsZero() && p.ID.Compare(last.id) <= 0 {
		return fmt.Errorf("commit id %v is not after the last one, %v", p.ID, last.id)
	}
	for _, st := range s.registered() {
		if sp := last.stores[st.id]; !sp.complete && !sp.offset.IsAbsent() {
			return fmt.Errorf("store %q is only partly restored (%v); Complete ends a restore, Clear forgets it", st.spec.Name, sp.offset)
		}
	}
	return nil
}

// Changes gives the writes in the form of the changelog, by store, in the order of
// registration, and key (segment and key; of versioned stores timestamp and key, so that a reader refuses none as too
// old). Stores without a changelog are among them, but for versioned ones; deleted ranges are not. The first caller sorts; any goroutine may call it.
func (x *Sealed) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		x.writes.Sort()
		for i := range x.writes.Len() {
			w := x.writes.At(i)
			if w.Unlogged {
				continue
			}
			st := x.stores[w.Store]
			if !yield(Change{Store: st.spec.Name, Key: st.logged(w.Key), Value: w.Value, Timestamp: w.Timestamp, Schema: st.spec.SchemaVersion}) {
				return
			}
		}
	}
}

// Len is the number of keys written; there are no more changes.
func (x *Sealed) Len() int { return x.writes.Len() }

// Bytes is the length of all keys and values.
func (x *Sealed) Bytes() int { return x.writes.Bytes() }

// Progress is what was given to Seal.
func (x *Sealed) Progress() Progress { return x.progress }

// Release ends a sealed interval after its Commit has succeeded, when nobody holds slices
// of its changes any more: its memory is used again, and its values may leave the cache.
// Before a successful Commit it does nothing, and the next Seal will say so.
func (s *TaskStore) Release(x *Sealed) {
	if x == nil || s.sealed != x || !x.committed.Load() {
		return
	}
	s.table.Applied()
	s.sealed = nil
	if s.scans == 0 { // an open scan reads it
		s.spare = x.writes
	}
}

// Drop forgets all that is not committed, sealed or not: the state is that of the last
// successful Commit. It waits for a Commit that is running. (The memory of a dropped
// interval is not used again: a client may still hold its slices.)
func (s *TaskStore) Drop() {
	s.write.Lock()
	defer s.write.Unlock()
	if s.sealed != nil {
		s.sealed.dropped.Store(true)
		s.sealed = nil
	}
	s.stopWarming()
	s.table.Reset()
	s.resetClocks()
	if s.usable() == nil {
		// Not finding out costs only speed; a failure is latched and the next call says so.
		_ = s.findComplete()
	}
}
