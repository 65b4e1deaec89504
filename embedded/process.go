package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// state of a partition.
type state uint8

const (
	restoring state = iota // assigned, its take-over is under way
	here                   // assigned, messages are processed
	gone                   // it was here; the client may still give messages that it had fetched
)

// part is a partition that is or was assigned.
type part struct {
	state state
	// last is the largest offset processed here, committed or not; -1 for none.
	last int64
	// fence, if not -1: records above it wait until one at or below it was seen (E1). refused is the
	// last of those, sought when the consumer was last set back because of them.
	fence, refused int64
	sought         time.Time
}

// seekAgain is how often a consumer is set back that goes on beyond the fence.
const seekAgain = time.Second

// passed remembers that a record was not processed, which has to come again before later ones.
func (p *part) passed(offset int64) { p.fence = max(p.fence, offset) }

// begin starts or restarts the partition at a position: what was processed behind it comes again first.
func (p *part) begin(position int64) {
	p.state = here
	p.passed(p.last)
	if p.fence < position {
		p.fence = -1
	}
	p.last, p.refused = position-1, -1
}

// admits tells whether the record is from a fetch that began at the position, or before. Records of
// one fetch come in order: one at or below what was passed over, or lower than the one before, is of
// a new one.
func (p *part) admits(offset int64) bool {
	if p.fence < 0 || offset <= p.fence || offset <= p.refused {
		p.fence, p.refused = -1, -1
		return true
	}
	p.refused = offset
	return false
}

// Process is for doors: it runs fn for a record of the user's consumer.
//
// It returns nil, without a call of fn, for a record that is in the state already, and for one that will come
// again (of a partition that is being restored, or that was set back, or while another input of its task is replayed). With an error of fn, everything since the last commit is dropped and the consumer
// is set back to there.
func (h *Host) Process(r *kafka.Record, fn func(*Task) error) error {
	if fn == nil { // also for a record that is left out
		return errors.New("process: no function")
	}
	if err := h.lock(); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	defer h.unlock()
	if err := h.usable(); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	tp := r.TopicPartition()
	p := h.parts[tp]
	if p == nil {
		return fmt.Errorf("record %v@%d: %w: subscribe with the host's own rebalance callback, and give the host only messages of its own consumer", tp, r.Offset, ErrNotAssigned)
	}
	w := h.worker(tp.Partition)
	if p.state != here || w == nil || h.halfway[w] || !w.Has(tp) {
		p.passed(r.Offset)
		return nil
	}
	if r.Offset < w.Position(tp) {
		p.admits(r.Offset)
		return nil
	}
	if !p.admits(r.Offset) {
		if now := time.Now(); now.Sub(p.sought) >= seekAgain {
			p.sought = now
			position := w.Position(tp)
			h.later = append(h.later, func() error { return h.consumer.Seek(map[kafka.TopicPartition]int64{tp: position}) })
		}
		return nil
	}
	if w.Waits(tp, r.Offset) {
		p.passed(r.Offset)
		return nil
	}
	replaying := w.Replaying(tp)
	err := h.run(w, p, r, fn)
	if replaying {
		h.afterReplay(w, tp)
	}
	return err
}

// run calls the function, and commits when it is time.
func (h *Host) run(w *task.Hosted, p *part, r *kafka.Record, fn func(*Task) error) (err error) {
	called, finished, failed := false, false, error(nil)
	defer func() {
		h.function = nil
		h.caller.Store(0)
		if called && !finished { // runtime.Goexit, which only the caller's goroutine can do
			h.rewind(h.open, w)
		}
	}()
	if h.cfg.Debug {
		h.caller.Store(goroutine())
	}
	h.function = func(t *Task) error {
		called = true
		failed = errFunction
		if ferr := fn(t); ferr != nil {
			failed = ferr
			return ferr
		}
		failed = nil
		return nil
	}
	p.last = r.Offset
	err = w.Process(h.commits(), r)
	finished = true
	switch {
	case err == nil:
		return nil
	case failed != nil: // its own error, or a panic
		h.rewind(h.open, w)
		return err
	case !called: // a record that has no place on the time line
		var refused *task.Error
		if errors.As(err, &refused) {
			h.rewind(h.open, w)
			return err
		}
	}
	h.mend(h.open, w, err) // the record was fine; what had to be dropped comes again
	if err := h.usable(); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	return nil
}

// errFunction stands for a panic.
var errFunction = errors.New("panic")

// lock takes the lock. In debug mode a call from within the function given to Process, which
// would wait for itself, is an error.
func (h *Host) lock() error {
	if h.mu.TryLock() {
		return nil
	}
	if err := h.within(); err != nil {
		return err
	}
	h.mu.Lock()
	return nil
}

func (h *Host) within() error {
	if h.cfg.Debug && h.caller.Load() == goroutine() {
		return errors.New("called from within the function given to Process, which has to return first")
	}
	return nil
}

// lockWithin is lock that gives up with the context.
func (h *Host) lockWithin(ctx context.Context) error {
	if h.mu.TryLock() {
		return nil
	}
	if err := h.within(); err != nil {
		return err
	}
	if err := h.mu.LockWithin(ctx); err != nil {
		return fmt.Errorf("the host is busy: %w", err)
	}
	return nil
}

// rewind drops what a worker has not committed and sets the consumer back to there. When ctx ends before that is through, the
// worker is halfway: it processes and commits nothing, until keepTime has rewound it.
func (h *Host) rewind(ctx context.Context, w *task.Hosted) {
	h.halfway[w] = true
	if ctx.Err() != nil {
		return
	}
	to, err := w.Reload(ctx)
	switch {
	case err == nil:
		delete(h.halfway, w)
	case errors.Is(err, task.ErrLost) || task.ActionOf(err) == task.Rejoin:
		h.loseAll(w, err)
		return
	case ctx.Err() == nil:
		h.fail(err)
		return
	default:
		return
	}
	h.begin(to)
	if len(to) > 0 {
		h.later = append(h.later, func() error { return h.consumer.Seek(to) })
	}
}

// begin starts or restarts partitions at their positions.
func (h *Host) begin(at map[kafka.TopicPartition]int64) {
	for tp, position := range at {
		h.parts[tp].begin(position)
		h.board.mark(tp, true)
	}
}

// mend does what an error of the worker, which is not the function's, asks for.
func (h *Host) mend(ctx context.Context, w *task.Hosted, cause error) {
	if h.life.Err() != nil || h.closed {
		return
	}
	h.dropped = cause
	action := task.ActionOf(cause)
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) { // a revoke, or who called Commit, has waited long enough
		action = task.Reload
	}
	switch action {
	case task.Retry, task.Reload:
		h.log.Warn("what was not committed is dropped and comes again", "reason", cause)
		h.rewind(ctx, w)
	case task.Rejoin:
		h.loseAll(w, cause)
	default:
		h.fail(cause)
	}
}

// loseAll closes every task of a worker: the group does not know the member any more under which they were
// given. The client will say so in its own time, and then give partitions anew.
// Nobody gives those anew that are assigned by hand.
func (h *Host) loseAll(w *task.Hosted, cause error) {
	if h.byHand.Load() {
		h.fail(cause)
		return
	}
	h.log.Warn("the consumer has lost its place in the group; what was not committed comes again, here or elsewhere", "reason", cause)
	if err := w.Drop(w.Tasks()); err != nil {
		h.log.Warn("close tasks", "error", err)
	}
	delete(h.halfway, w)
	for tp, p := range h.parts {
		if p.state == here && h.worker(tp.Partition) == w {
			p.state = gone
			h.board.mark(tp, false)
			p.passed(p.last)
		}
	}
}
