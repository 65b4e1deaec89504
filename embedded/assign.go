package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// batch is an assignment whose take-over is under way.
type batch struct {
	tps    []kafka.TopicPartition
	member kafka.Member
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	// adrift is closed by cast when the group does not know the member any more: the client has to hear of it, which it
	// does not inside of a callback.
	adrift chan struct{}
	cast   func()
}

// Assigned is for doors: the group gave these partitions to the consumer. Their state is restored beside the loop
// (or, with Config.RestoreInCallback, before it returns, unless the group drops the member meanwhile), then the consumer is told
// where to begin.
func (h *Host) Assigned(tps []kafka.TopicPartition) error {
	h.place.heard(len(tps))
	if len(tps) == 0 {
		return h.Err()
	}
	m, err := h.consumer.Member()
	if err != nil {
		return fmt.Errorf("partitions %v were assigned, but the consumer does not know its own membership: %w", tps, err)
	}
	h.mu.Lock()
	if h.byHand.Load() {
		h.fail(fmt.Errorf("the group gave partitions %v, but Assign was called: a consumer is either subscribed or assigned by hand", tps))
	}
	if err := h.usable(); err != nil {
		h.mu.Unlock()
		return err
	}
	b := h.takeOver(tps, m)
	h.mu.Unlock()
	if h.cfg.RestoreInCallback {
		select {
		case <-b.done:
		case <-b.adrift:
		}
		return h.Err()
	}
	return nil
}

// takeOver begins the take-over of partitions, with the lock held.
func (h *Host) takeOver(tps []kafka.TopicPartition, m kafka.Member) *batch {
	b := &batch{tps: slices.Clone(tps), member: m, done: make(chan struct{}), adrift: make(chan struct{})}
	b.cast = sync.OnceFunc(func() { close(b.adrift) })
	b.ctx, b.cancel = context.WithCancel(h.life)
	h.batches[b] = true
	for _, tp := range tps {
		p := h.parts[tp]
		if p == nil {
			p = &part{last: -1, fence: -1, refused: -1}
			h.parts[tp] = p
		}
		p.state = restoring
		h.board.mark(tp, false)
	}
	h.work.Go(func() { // ended by cancel
		defer close(b.done)
		defer b.cancel()
		h.bring(b)
	})
	return b
}

// bring repeats the take-over of a batch for as long as its errors may go away.
func (h *Host) bring(b *batch) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := h.tryBring(b)
		if err == nil || b.ctx.Err() != nil {
			return
		}
		switch action := task.ActionOf(err); {
		case errors.Is(err, errCancelled): // by a revoke of others, or the worker is not fit for it yet
			h.log.Warn("take over partitions: trying again", "partitions", fmt.Sprint(b.tps), "error", err)
		case action == task.Rejoin && !h.member().Same(b.member): // the client will hear of it and assign anew
			h.log.Warn("take over partitions: the consumer has lost its place", "partitions", fmt.Sprint(b.tps), "error", err)
			return
		case action == task.Retry || action == task.Reload || action == task.Rejoin:
			h.log.Warn("take over partitions: trying again", "partitions", fmt.Sprint(b.tps), "error", err)
			if action == task.Rejoin {
				b.cast()
			}
		default:
			h.mu.Lock()
			h.fail(fmt.Errorf("take over partitions %v: %w", b.tps, err))
			h.mu.Unlock()
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
		}
	}
}

func (h *Host) tryBring(b *batch) error {
	if err := h.prepare(b.ctx, b.tps); err != nil {
		return err
	}
	ids, err := h.taskIDs(b.tps)
	if err != nil {
		return err
	}
	if err := h.checkFileDescriptors(); err != nil {
		return err
	}
	w, err := h.makeWorker(b.ctx, ids)
	if err != nil {
		return err
	}
	taken, err := w.TakeOver(b.ctx, b.member, ids)
	if err != nil {
		return err
	}
	if err := w.Seed(b.ctx, taken, func(write func(context.Context) error) error { return h.between(b, w, write) }); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.unlock()
	if !h.takes(b, w) {
		return taken.Close(h.life)
	}
	from, err := w.Absorb(h.life, taken)
	if err != nil {
		h.mend(h.open, w, err) // of the tasks that are here already: their interval is lost with it
		return err
	}
	h.acted()
	delete(h.batches, b)
	h.begin(from)
	if h.consumer.BeginLocked {
		return h.consumer.Begin(from)
	}
	h.later = append(h.later, func() error { return h.beginFetching(from) })
	return nil
}

// checkFileDescriptors tells, before more stores are opened, whether the process may have as many files open as all tasks
// need that are here or on their way.
func (h *Host) checkFileDescriptors() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	tasks := map[int32]bool{}
	for tp, p := range h.parts {
		if p.state != gone {
			tasks[tp.Partition] = true
		}
	}
	if err := h.resources.CheckFileDescriptors(len(tasks)); err != nil {
		return fmt.Errorf("state stores: %w", err)
	}
	return nil
}

// takes tells, with the lock held, whether the take-over of a batch still goes on, and its worker is fit for it.
func (h *Host) takes(b *batch, w *task.Hosted) bool {
	if h.halfway[w] {
		h.rewind(h.open, w)
	}
	return b.ctx.Err() == nil && h.usable() == nil && !h.halfway[w]
}

// errCancelled ends an attempt at a take-over.
var errCancelled = errors.New("the take-over was interrupted")

// between has a step of a take-over done that needs the worker, between two calls of others.
func (h *Host) between(b *batch, w *task.Hosted, step func(context.Context) error) error {
	h.mu.Lock()
	defer h.unlock()
	if !h.takes(b, w) {
		return errCancelled
	}
	ctx := h.commits() // a revoke that waits for the lock ends it in time
	err := step(ctx)
	if err != nil {
		h.mend(ctx, w, err)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", errCancelled, err)
		}
	}
	return err
}

// taskIDs groups partitions into tasks: partition n of all inputs is task n.
func (h *Host) taskIDs(tps []kafka.TopicPartition) (ids []processor.TaskID, err error) {
	count := map[int32]int{}
	for _, tp := range tps {
		count[tp.Partition]++
	}
	for n, have := range count {
		if n < 0 || n >= h.partitions {
			return nil, fmt.Errorf("partition %d was assigned, but the inputs %v had %d partitions when the host began: where their number was raised, so must be that of the changelogs, and the host opened again", n, h.inputs, h.partitions)
		}
		if have != len(h.inputs) {
			return nil, fmt.Errorf("partition %d was assigned of %d topics, but the inputs are %v: use an assignor that keeps them together, such as range; by hand, assign it of all of them", n, have, h.inputs)
		}
		ids = append(ids, processor.TaskID{Partition: n})
	}
	slices.SortFunc(ids, func(a, b processor.TaskID) int { return int(a.Partition - b.Partition) })
	return ids, nil
}

// cancelBatches ends the take-overs that have one of these partitions (nil: all), with the lock
// held. Whoever calls it waits for their done without the lock.
func (h *Host) cancelBatches(tps []kafka.TopicPartition) (cancelled []*batch) {
	for b := range h.batches {
		if tps == nil || slices.ContainsFunc(b.tps, func(tp kafka.TopicPartition) bool { return slices.Contains(tps, tp) }) {
			b.cancel()
			delete(h.batches, b)
			cancelled = append(cancelled, b)
		}
	}
	return cancelled
}

// Revoked is for doors: the group takes these partitions away. What was processed is committed, the
// stores are closed when it returns (E4). It must be called before the group gives the partitions to another.
func (h *Host) Revoked(tps []kafka.TopicPartition) error {
	defer h.bound()()
	looked := false // once is enough for all workers: by hand each partition has one
	return h.leave(tps, func(w *task.Hosted, ids []processor.TaskID) error {
		if !h.halfway[w] && !looked {
			looked = true
			if err := h.reclaim(h.commits(), append(h.Ready(), tps...)); err != nil {
				h.fail(err)
			}
		}
		if h.halfway[w] {
			return w.Drop(ids)
		}
		return w.Release(h.commits(), ids)
	})
}

// Lost is for doors: these partitions are another's already. Nothing is committed.
func (h *Host) Lost(tps []kafka.TopicPartition) error {
	defer h.bound()()
	return h.leave(tps, func(w *task.Hosted, ids []processor.TaskID) error {
		return errors.Join(w.Drop(ids), errDropped)
	})
}

// errDropped: the running interval is lost, also that of tasks that stay.
var errDropped = errors.New("without a commit")

func (h *Host) leave(tps []kafka.TopicPartition, close func(*task.Hosted, []processor.TaskID) error) error {
	h.mu.Lock()
	cancelled := h.cancelBatches(tps)
	h.mu.Unlock()
	for _, b := range cancelled {
		<-b.done
	}
	h.mu.Lock()
	defer h.unlock()
	if h.usable() != nil {
		return nil // Close has closed, or will
	}
	h.again(cancelled, tps)
	leaving := map[*task.Hosted][]processor.TaskID{}
	for _, tp := range tps {
		p := h.parts[tp]
		if p == nil {
			continue
		}
		p.state = gone
		h.board.mark(tp, false)
		id := processor.TaskID{Partition: tp.Partition}
		if w := h.worker(tp.Partition); w != nil && w.Has(tp) && !slices.Contains(leaving[w], id) {
			leaving[w] = append(leaving[w], id)
		}
	}
	var errs []error
	for w, ids := range leaving {
		if err := close(w, ids); err != nil {
			h.left(w, tps)
			h.dropped = fmt.Errorf("partitions %v were taken away: %w", tps, err)
			if !errors.Is(err, errDropped) {
				errs = append(errs, err)
			}
		}
	}
	h.checkWhole(tps)
	return errors.Join(append(errs, h.dismiss(tps))...)
}

// checkWhole stops the host when a task was closed of which another input stays: nobody would process that.
func (h *Host) checkWhole(left []kafka.TopicPartition) {
	for _, tp := range left {
		for _, topic := range h.inputs {
			other := kafka.TopicPartition{Topic: topic, Partition: tp.Partition}
			if p := h.parts[other]; p != nil && p.state == here && !slices.Contains(left, other) {
				h.fail(fmt.Errorf("partition %v was taken away, %v was not: use an assignor that keeps the inputs together, such as range", tp, other))
			}
		}
	}
}

// left follows the end of tasks without a commit: the running interval of their worker is lost.
func (h *Host) left(w *task.Hosted, tps []kafka.TopicPartition) {
	for _, tp := range tps {
		if p := h.parts[tp]; p != nil && h.worker(tp.Partition) == w {
			p.passed(p.last)
		}
	}
	if !h.byHand.Load() {
		h.rewind(h.commits(), w) // the tasks that stay; without one, only the producer
	}
}

// again goes on with those partitions of a take-over that was cancelled which stay assigned.
func (h *Host) again(cancelled []*batch, without []kafka.TopicPartition) {
	for _, b := range cancelled {
		rest := slices.DeleteFunc(slices.Clone(b.tps), func(tp kafka.TopicPartition) bool {
			return slices.Contains(without, tp) || h.parts[tp].state != restoring
		})
		if len(rest) > 0 {
			h.takeOver(rest, b.member)
		}
	}
}
