package statestore

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// warming is a load of all stores into the cache, done bit by bit.
type warming struct {
	it    *pebble.Iterator
	at    int // the store being read
	drops int // of the table, when it began
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
	if s.warm == nil {
		s.warm = &warming{drops: s.table.Drops()}
	}
	for n > 0 {
		st := s.nextToWarm()
		if st == nil {
			s.stopWarming()
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
	err := s.db.Read("warm", func(db *pebble.DB) error {
		if w.it == nil {
			lower, upper := storeBounds(st.id)
			it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
			if err != nil {
				return err
			}
			w.it = it
			it.First()
		}
		for ; n > 0 && w.it.Valid(); n-- {
			stored, err := w.it.ValueAndErr()
			if err != nil {
				return err
			}
			value, timestamp, err := st.split(stored)
			if err != nil {
				return err
			}
			if !s.table.Load(st.number, w.it.Key()[storePrefixLen:], value, timestamp) {
				n = 0
				w.drops = -1 // refused: give up
				return nil
			}
			w.it.Next()
		}
		if w.it.Valid() {
			return nil
		}
		err := errors.Join(w.it.Error(), w.it.Close())
		w.it = nil
		if err == nil && s.table.Drops() == w.drops {
			s.table.SetComplete(st.number, true)
			w.at++
		}
		return err
	})
	return n, err
}

// stopWarming ends a load that is under way.
func (s *TaskStore) stopWarming() {
	if s.warm != nil && s.warm.it != nil {
		// If this fails, the failure is latched, and the next call says so.
		_ = s.db.EndRead("warm", s.warm.it)
	}
	s.warm = nil
}
