package statestore

import (
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

// Sync waits until everything committed so far is on the disk. Any goroutine may call it.
func (s *TaskStore) Sync() error {
	s.ending.RLock()
	defer s.ending.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.syncNow()
}

func (s *TaskStore) syncNow() error {
	upTo := s.committed.Load()
	if s.durable.Load().seq >= upTo.seq {
		return nil
	}
	if err := s.db.Sync(); err != nil {
		return err
	}
	for _, e := range s.besides() {
		if err := e.Sync(); err != nil {
			return s.db.Fail("sync", err)
		}
	}
	failpoint.Hit("synced")
	for {
		d := s.durable.Load()
		if d.seq >= upTo.seq || s.durable.CompareAndSwap(d, upTo) {
			return nil
		}
	}
}

// Flush does nothing, and is here for those who come from Kafka Streams, where a store is
// flushed at a commit. Here data, offsets and positions are committed together: ask for a
// commit with ctx.Commit() of the processor's context.
func (s *TaskStore) Flush() error { return nil }

// syncer syncs a task store some time after it was written to. An idle store has no
// goroutine and no timer.
type syncer struct {
	s *TaskStore

	mu      sync.Mutex
	timer   *time.Timer
	armed   bool
	stopped bool
	quit    chan struct{} // closed when it is to stop
	running sync.WaitGroup
}

func (y *syncer) init(s *TaskStore) { y.s, y.quit = s, make(chan struct{}) }

// arm is called after each write that did not wait for the disk.
func (y *syncer) arm() {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.armed || y.stopped {
		return
	}
	y.armed = true
	y.running.Add(1)
	y.timer = time.AfterFunc(y.s.o.SyncInterval, y.run)
}

func (y *syncer) run() {
	defer y.running.Done()
	y.s.resources.r.LimitSync(y.quit, func() {
		// What is committed from here on arms the timer again. A failure is latched and logged.
		y.mu.Lock()
		y.armed = false
		y.mu.Unlock()
		_ = y.s.syncNow()
	})
}

// stop ends the timer and waits for a sync that is running, which fails if the disk does not answer: see EndSoon.
func (y *syncer) stop() {
	y.mu.Lock()
	if !y.stopped {
		close(y.quit)
	}
	y.stopped = true
	if y.timer != nil && y.timer.Stop() {
		y.running.Done()
	}
	y.mu.Unlock()
	y.running.Wait()
}
