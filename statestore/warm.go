package statestore

import (
	"bytes"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// warming is a load of all stores into the cache, done bit by bit.
type warming struct {
	it    engine.Iter
	on    bool // it stands on an entry
	at    int  // the store being read
	drops int  // of the table, when it began
	// ranges is how often deleted ranges had come into the database when it was opened.
	ranges int
}

// Warm loads up to n entries of the database into the cache and tells whether there is
// nothing left to do: all is in the cache, or it does not fit. After a restart it is to be
// called between polls until then: a store that is in the cache as a whole answers also
// for the keys that it does not have. Every other way of changing the stores in between is
// allowed.
func (s *TaskStore) Warm(n int) (done bool, err error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	s.Trim()
	if s.warm == nil {
		s.warm = &warming{drops: s.table.Drops()}
		if s.nextToWarm() != nil {
			s.resources.cache.ask(s.share, wantsAll)
			s.Trim()
			s.warm.drops = s.table.Drops()
		}
	}
	for n > 0 {
		st := s.nextToWarm()
		if st == nil {
			s.stopWarming()
			s.tend()
			return true, nil
		}
		if n, err = s.warmStore(st, n); err != nil {
			s.stopWarming()
			return false, err
		}
	}
	return false, nil
}

// nextToWarm gives the store to go on with, nil at the end.
func (s *TaskStore) nextToWarm() *store {
	w, stores := s.warm, s.registered()
	if s.table.Drops() != w.drops {
		return nil // it does not fit
	}
	for w.it == nil && w.at < len(stores) && s.table.Complete(stores[w.at].number) {
		w.at++
	}
	if w.at == len(stores) {
		return nil
	}
	return stores[w.at]
}

// warmStore loads up to n entries and gives what is left of n.
func (s *TaskStore) warmStore(st *store, n int) (int, error) {
	w := s.warm
	if err := s.openWarming(st); err != nil {
		return n, err
	}
	for ; n > 0 && w.on; n-- {
		value, timestamp, err := st.split(w.it.Value())
		if err != nil {
			return n, st.rows.Fail("warm", err)
		}
		// What the cache gives up may have been written since the iterator was opened: from then
		// on the iterator's rows may be older than the database's.
		if s.table.MakeRoom(); s.table.Drops() != w.drops {
			return 0, nil
		}
		if !s.table.Load(st.number, w.it.Key()[storePrefixLen:], value, timestamp) {
			w.drops = -1 // refused: give up
			return 0, nil
		}
		w.on = w.it.Next()
	}
	if w.on {
		return n, nil
	}
	err := w.it.Close()
	w.it = nil
	if err == nil && s.table.Drops() == w.drops {
		s.table.SetComplete(st.number, true)
		w.at++
	}
	return n, err
}

// openWarming gives the load an iterator that shows nothing that was deleted with a range
// and is not remembered as deleted any more.
func (s *TaskStore) openWarming(st *store) error {
	w := s.warm
	if w.it != nil && w.ranges == s.table.RangesApplied() {
		return nil
	}
	lower, upper := storeBounds(st.id)
	if w.it != nil {
		lower = bytes.Clone(w.it.Key())
		if err := w.it.Close(); err != nil {
			return err
		}
		w.it = nil
	}
	it, err := st.rows.NewIter("warm", lower, upper)
	if err != nil {
		return err
	}
	w.it, w.on, w.ranges = it, it.First(), s.table.RangesApplied()
	return nil
}

// stopWarming ends a load that is under way.
func (s *TaskStore) stopWarming() {
	if s.warm != nil && s.warm.it != nil {
		// If this fails, the failure is latched, and the next call says so.
		_ = s.warm.it.Close()
	}
	s.warm = nil
}
