package embedded

import (
	"context"
	"slices"
	"sync"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// turn is the host's lock. Unlike a mutex it can be waited for within a context: whoever has it may be waiting for a broker.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

func (t turn) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// LockWithin gives up with the context.
func (t turn) LockWithin(ctx context.Context) error {
	if t.TryLock() {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// board is what anyone may ask of the host at any moment, also from the function given to Process, and while whoever has
// the host's lock waits for a broker. Who changes it has the host's lock too.
type board struct {
	mu      sync.Mutex // held for moments
	workers []*task.Hosted
	// past has the counters of workers that are closed: those of the host never go down.
	past   task.Status
	ready  map[kafka.TopicPartition]bool
	stores *statestore.Resources // nil before Open is through, and after Close
	err    error
}

func (b *board) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// add makes a worker visible.
func (b *board) add(w *task.Hosted) {
	b.change(func() { b.workers = append(b.workers, w) })
}

// remove keeps the counters of a worker that was closed.
func (b *board) remove(w *task.Hosted) {
	b.change(func() {
		s := w.Status()
		s.Tasks = nil
		addStatus(&b.past, s)
		b.workers = slices.DeleteFunc(b.workers, func(x *task.Hosted) bool { return x == w })
	})
}

// mark says whether the state of a partition is here.
func (b *board) mark(tp kafka.TopicPartition, here bool) {
	b.change(func() {
		if !here {
			delete(b.ready, tp)
			return
		}
		if b.ready == nil {
			b.ready = map[kafka.TopicPartition]bool{}
		}
		b.ready[tp] = true
	})
}

func addStatus(all *task.Status, s task.Status) {
	all.Name, all.State = s.Name, s.State
	all.Processed += s.Processed
	all.Commits += s.Commits
	all.CommitTime += s.CommitTime
	all.Tasks = append(all.Tasks, s.Tasks...)
}

// Err is nil while the host works. Look at it in the loop's condition: after a failure no partition is
// served any more, and only Close is left.
func (h *Host) Err() error {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	return h.board.err
}

// Ready gives the partitions whose state is here, in no order.
func (h *Host) Ready() (ready []kafka.TopicPartition) {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	for tp := range h.board.ready {
		ready = append(ready, tp)
	}
	return ready
}

// Status gives a snapshot of tasks and commits. It is empty before the first assignment.
func (h *Host) Status() task.Status {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	all := h.board.past
	for _, w := range h.board.workers {
		addStatus(&all, w.Status())
	}
	return all
}

// StoreStats tells how the task stores use memory, and how often their caches answer. It is zero after Close.
func (h *Host) StoreStats() statestore.ResourceStats {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.stores == nil {
		return statestore.ResourceStats{}
	}
	return h.board.stores.Stats()
}

// SetCacheBytes changes how much memory the tasks of this host may together use for values that they have read or written
// (Config.Resources.CacheBytes), at any time; n must be positive, else nothing happens. Each task goes by it at its next turn.
func (h *Host) SetCacheBytes(n int64) {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if n > 0 && h.board.stores != nil {
		h.board.stores.SetCacheBytes(n)
	}
}
