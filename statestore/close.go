package statestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Close drops what is not committed, flushes and closes: the next Open replays nothing. A
// store that failed is left behind if it cannot be closed. Calling Close again does
// nothing. It waits for a Commit that is running, and must not be called inside a scan.
func (s *TaskStore) Close() error {
	if s.closed.Load() {
		return nil
	}
	if s.scans > 0 {
		return fmt.Errorf("close task store %s: a scan is open", s.dir)
	}
	s.stopWarming()
	s.refuseCalls()
	s.sync.stop()
	var err error
	if s.db.Err() == nil && s.committed.Load().seq > 0 {
		err = s.db.Write("flush", func(db *pebble.DB) error { return db.Flush() })
	}
	if err == nil && s.db.Err() == nil {
		s.durable.Store(s.committed.Load())
	}
	err = errors.Join(err, s.db.Close())
	if s.private {
		s.resources.r.Close()
	}
	if err != nil {
		return fmt.Errorf("close task store %s: %w", s.dir, err)
	}
	return nil
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
