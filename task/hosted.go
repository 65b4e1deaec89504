package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// Hosted is a worker without a loop: records, and the tasks themselves, come from a consumer that
// the program has already, and go with it. Its topology has one sub-topology.
//
// One goroutine at a time may call its methods, but for [Hosted.TakeOver] and [Hosted.Stop]. After an error of
// Process, Turn, Commit or Absorb the running interval is lost: [ActionOf] says whether Reload
// makes good of it.
type Hosted struct {
	w   *Worker
	cfg Config // as it was given, for take-overs, which have members of their own
	one [1]kafka.Record
	// since counts the records since the commit triggers were looked at.
	since int
}

// turnHosted is after how many records the clock is looked at.
const turnHosted = 64

// NewHosted makes a worker without tasks. sinks are the topics that [Hosted.Send] may write.
func NewHosted(cfg Config, sinks ...kafka.Topic) *Hosted {
	cfg.Limits.MaxTaskIdle = 0 // the order of records is the caller's
	h := &Hosted{w: NewWorker(cfg, nil), cfg: cfg}
	for _, t := range sinks {
		h.w.sinks[t.Name] = sinkTopic{t.Name, t.Partitions, cfg.Guarantee == ExactlyOnce}
	}
	return h
}

// Open opens the clients and fences every former user of the transactional id.
func (h *Hosted) Open(ctx context.Context) (err error) {
	if h.w.txn, err = h.w.cfg.Transactional(); err != nil {
		return fmt.Errorf("open transactional producer: %w", err)
	}
	if err := h.w.openClients(); err != nil {
		return err
	}
	return h.w.initialise(ctx)
}

// Has tells whether the task of a partition is here.
func (h *Hosted) Has(tp kafka.TopicPartition) bool { return h.w.queues[tp] != nil }

// Position is the next offset of a partition that is to be processed. The partition must be here.
func (h *Hosted) Position(tp kafka.TopicPartition) int64 { return h.w.queues[tp].position }

// Positions are those of all partitions.
func (h *Hosted) Positions() map[kafka.TopicPartition]int64 {
	all := map[kafka.TopicPartition]int64{}
	for tp, q := range h.w.queues {
		all[tp] = q.position
	}
	return all
}

// Status gives a snapshot; anyone may call it.
func (h *Hosted) Status() Status { return h.w.Status() }

// Process runs one record, whose partition must be here and which is not below its position.
func (h *Hosted) Process(ctx context.Context, r *kafka.Record) error {
	w, now := h.w, h.w.now()
	q := w.queues[r.TopicPartition()]
	t := w.taskOf(q)
	if err := h.reachLive(t, q, r.Offset); err != nil {
		return w.failRunning(ctx, err)
	}
	h.one[0] = *r
	q.offer(&kafka.Fetched{TopicPartition: q.tp, Records: h.one[:], Next: r.Offset + 1})
	n, err := t.process(1, now)
	w.count(n, now)
	if err == nil {
		err = w.endReplay(t)
	}
	if err != nil {
		return w.failRunning(ctx, err)
	}
	l := &w.cfg.Limits
	h.since++
	if h.since < turnHosted && !w.commitNow && !w.reached(t.store.DirtyBytes()) && (l.CommitRecords == 0 || w.running.records < l.CommitRecords) {
		return nil
	}
	return h.Turn(ctx)
}

// Turn sends what is to be sent at once, takes the result of the commit under way, and begins the
// next when it is time. It is to be called now and then also when no record comes. ctx must last as long as
// a commit.
func (h *Hosted) Turn(ctx context.Context) error {
	h.since = 0
	for _, t := range h.w.tasks {
		if err := t.warmUp(); err != nil {
			return h.w.failRunning(ctx, err)
		}
	}
	return h.w.endTurn(ctx)
}

// Renew has the next Commit commit the offsets of these tasks also when nothing moved: somebody has overwritten them.
func (h *Hosted) Renew(ids []processor.TaskID) {
	for _, t := range h.w.tasks {
		if slices.Contains(ids, t.id) {
			t.lastCommit = time.Time{}
		}
	}
}

// ErrUnderWay: a commit was not waited for to its end.
var ErrUnderWay = errors.New("the commit is still under way")

// Commit commits what was processed, and returns when that is done, or with [ErrUnderWay] when wait ends before: the
// commit itself, which has until ctx ends, then goes on. Nor does it ask for longer what became of a commit in doubt.
func (h *Hosted) Commit(ctx, wait context.Context) error {
	if err := h.collectWithin(ctx, wait); err != nil {
		return err
	}
	if err := h.w.sealIfMoved(ctx); err != nil {
		return err
	}
	return h.collectWithin(ctx, wait)
}

func (h *Hosted) collectWithin(ctx, wait context.Context) error {
	if h.w.sealed == nil {
		return nil
	}
	select {
	case res := <-h.w.results:
		return h.w.take(wait, res)
	case <-wait.Done():
	}
	if ctx.Err() != nil { // the commit ends too, and what became of it is to be told
		return h.w.collect(ctx, true)
	}
	return fmt.Errorf("%w: %w", ErrUnderWay, wait.Err())
}

// Send adds an output of the record in process: to the transaction of its interval under
// [ExactlyOnce], else to what is delivered before that. Key and value are copied.
func (h *Hosted) Send(id processor.TaskID, o processor.Output) error {
	if _, ok := h.w.sinks[o.Topic]; !ok {
		return fmt.Errorf("topic %s was not named as an output", o.Topic)
	}
	for _, t := range h.w.tasks {
		if t.id == id {
			if t.replay != nil {
				return nil
			}
			t.wrote = true
			t.out += len(o.Key) + len(o.Value) + recordOverhead
		}
	}
	return h.w.send(o)
}

// RequestCommit asks for a commit behind the record in process.
func (h *Hosted) RequestCommit() { h.w.commitNow = true }

// BeforeCommit has f called, from the goroutine of the commit, before the running interval is
// committed; its error drops the interval.
func (h *Hosted) BeforeCommit(f func(context.Context) error) {
	h.w.running.before = append(h.w.running.before, f)
}

// Release commits, and closes the tasks in any case. With an error what was not committed is lost.
func (h *Hosted) Release(ctx context.Context, ids []processor.TaskID) error {
	err := h.Commit(ctx, ctx)
	return errors.Join(err, h.closeTasks(ids))
}

// Drop closes tasks without a commit. The running interval is lost, that of the tasks that stay too:
// unless none does, Reload must follow.
func (h *Hosted) Drop(ids []processor.TaskID) error {
	h.w.await()
	h.w.box.drop()
	h.w.direct.drop()
	h.w.running = newInterval()
	return h.closeTasks(ids)
}

func (h *Hosted) closeTasks(ids []processor.TaskID) error {
	var errs []error
	w := h.w
	w.tasks = slices.DeleteFunc(w.tasks, func(t *Task) bool {
		if !slices.Contains(ids, t.id) {
			return false
		}
		for _, q := range t.queues {
			delete(w.queues, q.tp)
		}
		errs = append(errs, t.close())
		return true
	})
	w.status.forget(ids)
	return errors.Join(errs...)
}

// Tasks are those that are here.
func (h *Hosted) Tasks() (ids []processor.TaskID) {
	for _, t := range h.w.tasks {
		ids = append(ids, t.id)
	}
	return ids
}

// Stop ends every wait for a broker, now and from now on: only Close may follow.
func (h *Hosted) Stop() { h.w.stop() }

// Close drops what is not committed, and closes tasks and clients.
func (h *Hosted) Close(ctx context.Context) error { return h.w.close(ctx, nil) }

// ActionOf is [Decide] for any error of a task or a worker.
func ActionOf(err error) Action { return disposition(err) }

// Reload drops the running interval, makes the producer usable and takes the same tasks over again,
// for as long as that may work. It gives their positions, where the consumer has to be set.
func (h *Hosted) Reload(ctx context.Context) (map[kafka.TopicPartition]int64, error) {
	for failures := 0; ; failures++ {
		err := h.reload(ctx)
		if err == nil {
			return h.Positions(), nil
		}
		if a := disposition(err); ctx.Err() != nil || h.w.stopping() || a != Retry && a != Reload {
			return nil, err
		}
		h.w.log.Warn("reload tasks: trying again", "reason", err)
		h.w.idle(ctx, min(50*time.Millisecond<<min(failures, 10), 5*time.Second))
	}
}

func (h *Hosted) reload(ctx context.Context) error {
	h.since = 0
	if err := h.w.reload(ctx); err != nil || len(h.w.tasks) == 0 {
		return err
	}
	plans, err := h.w.bringAll(ctx)
	if err != nil {
		return err
	}
	if err := h.w.seedNow(ctx, plans); err != nil {
		return err
	}
	return h.start(ctx, plans)
}

// start is the end of a take-over: from here on the tasks are this worker's.
func (h *Hosted) start(ctx context.Context, plans []*plan) error {
	if err := h.w.commitEpochs(ctx, plans); err != nil {
		return err
	}
	for _, p := range plans {
		if err := h.w.startTask(p); err != nil {
			return &Error{Task: p.task.id, Err: err}
		}
		for _, q := range p.task.queues {
			p.task.sealedAt[q.tp] = q.position
		}
	}
	return nil
}
