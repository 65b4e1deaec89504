package statestore

import (
	"errors"
	"fmt"
)

// Close drops what is not committed, flushes and closes: the next Open replays nothing. A
// store that failed is left behind if it cannot be closed. Calling Close again does
// nothing. It waits for a Commit that is running, and must not be called inside a scan. A disk that
// does not answer anything for 30 s ends the waiting, also that of a Commit, a restore or a Snapshot, as a failure. What
// Pebble cannot close then is left behind, changes nothing any more, and the directory can be opened again as soon as no operation
// of its is under way.
//
// Nil means that everything committed is on the disk. If the store failed before it was, the
// error wraps [ErrFailed], whether the failure was told before or nobody has asked since.
func (s *TaskStore) Close() error {
	if s.closed.Load() {
		return nil
	}
	if s.scans > 0 {
		return fmt.Errorf("close task store %s: a scan is open", s.dir)
	}
	s.stopWarming()
	if db, ok := s.db.(interface{ EndSoon() }); ok {
		db.EndSoon()
	}
	s.refuseCalls()
	s.sync.stop()
	var err error
	if s.db.Err() == nil && s.committed.Load().seq > 0 {
		err = s.flushAll()
	}
	for _, x := range s.externals {
		err = errors.Join(err, x.Close())
	}
	err = errors.Join(err, s.db.Close())
	if err == nil && s.durable.Load().seq < s.committed.Load().seq {
		err = s.db.Err() // what it failed of came in the background: no other call need have told
	}
	s.markDamaged()
	s.resources.cache.leave(s.share)
	if s.private {
		err = errors.Join(err, s.resources.Close())
	}
	if err != nil {
		return fmt.Errorf("close task store %s: %w", s.dir, err)
	}
	return nil
}

// flushAll brings what is committed into tables.
func (s *TaskStore) flushAll() error {
	last := s.committed.Load()
	err := s.db.Flush()
	for _, e := range s.besides() {
		err = errors.Join(err, e.Flush())
	}
	if err == nil {
		s.durable.Store(last)
	}
	return err
}

// refuseCalls returns when no call of another goroutine is on its way to the database, and
// none will be.
func (s *TaskStore) refuseCalls() {
	s.write.Lock()
	defer s.write.Unlock()
	s.ending.Lock()
	defer s.ending.Unlock()
	s.closed.Store(true)
}
