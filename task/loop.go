package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	// turnRecords is how many records of one task are processed before it is the next one's
	// turn and the commit triggers are looked at.
	turnRecords = 1000
	// idlePoll bounds a poll that has nothing to wait for but records.
	idlePoll = 50 * time.Millisecond
)

// loop polls, processes and commits until the worker is stopped (nil: everything processed is
// committed) or something fails.
func (w *Worker) loop(ctx context.Context) error {
	w.status.state("running")
	for {
		if err := w.collect(ctx, false); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if m := w.cfg.Member(); !m.Same(w.cfg.Started) {
			return fmt.Errorf("%w: member %q is now %q", ErrLost, w.cfg.Started.ID, m.ID)
		}
		if w.stopping() {
			return w.finish(ctx)
		}
		if err := w.pollOnce(ctx); err != nil {
			return err
		}
		if err := w.processAll(ctx); err != nil {
			return err
		}
	}
}

// finish commits the last interval of a worker that is being stopped.
func (w *Worker) finish(ctx context.Context) error {
	w.status.state("closing")
	if err := w.collect(ctx, true); err != nil {
		return err
	}
	if err := w.sealIfMoved(ctx); err != nil {
		return err
	}
	return w.collect(ctx, true)
}

func (w *Worker) pollOnce(ctx context.Context) error {
	for _, q := range w.queues {
		q.secure()
		w.throttle(q)
	}
	pctx, cancel := context.WithTimeout(ctx, w.pollTimeout())
	defer cancel()
	if err := w.consumer.Poll(pctx, &w.poll); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	for i := range w.poll.Partitions {
		f := &w.poll.Partitions[i]
		q := w.queues[f.TopicPartition]
		if q == nil {
			continue
		}
		if f.Err != nil {
			return w.partitionError(ctx, q, f.Err)
		}
		q.offer(f)
	}
	return nil
}

// pollTimeout is the time to the next thing to do.
func (w *Worker) pollTimeout() time.Duration {
	now := w.now()
	wait := idlePoll
	for _, t := range w.tasks {
		for _, q := range t.queues {
			if q.len() > 0 {
				wait = min(wait, time.Millisecond) // the task waits for another partition
			}
		}
		if at, ok := t.inst.NextWallClock(); ok {
			wait = min(wait, at.Sub(now))
		}
	}
	if !w.running.started.IsZero() && w.sealed == nil {
		wait = min(wait, w.running.started.Add(w.cfg.Limits.CommitInterval).Sub(now))
	}
	return max(wait, 0)
}

// throttle pauses a partition with too many waiting records and resumes it at half of them.
func (w *Worker) throttle(q *queue) {
	limit := w.cfg.Limits.BufferedRecords
	switch {
	case !q.paused && q.len() >= limit:
		w.consumer.Pause(q.tp)
		q.paused = true
	case q.paused && q.len() <= limit/2:
		w.consumer.Resume(q.tp)
		q.paused = false
	}
}

// partitionError gives the error of a source partition its full text.
func (w *Worker) partitionError(ctx context.Context, q *queue, err error) error {
	if !kafka.IsClass(err, kafka.ClassOffsetOutOfRange) {
		return fmt.Errorf("read %v: %w", q.tp, err)
	}
	id := w.taskOf(q).id
	start, lerr := w.cfg.Admin.ListOffsets(ctx, kafka.Earliest, q.tp)
	if lerr != nil || start[q.tp] <= q.fetched {
		return &Error{Task: id, Err: fmt.Errorf("read %v at offset %d: %w", q.tp, q.fetched, err)}
	}
	return &Error{Task: id, Err: fmt.Errorf("read %v: %d records are gone: the group's offset is %d, the log starts at %d; reset the group's offset to accept the loss: %w",
		q.tp, start[q.tp]-q.fetched, q.fetched, start[q.tp], err)}
}

func (w *Worker) taskOf(q *queue) *Task {
	for _, t := range w.tasks {
		if t.queue(q.tp) == q {
			return t
		}
	}
	return nil
}

// processAll works on everything that waits, turn by turn, and commits when it is time.
func (w *Worker) processAll(ctx context.Context) error {
	for {
		now, total := w.now(), 0
		for _, t := range w.tasks {
			n, err := t.process(turnRecords, now)
			w.count(n, now)
			total += n
			if err == nil {
				err = t.punctuate(now)
			}
			if err == nil {
				err = t.warmUp()
			}
			if err != nil {
				return w.failRunning(ctx, err)
			}
		}
		if err := w.sendDirect(ctx); err != nil {
			return err
		}
		if err := w.commitIfDue(ctx); err != nil {
			return err
		}
		if total == 0 || w.stopping() || ctx.Err() != nil {
			return nil
		}
	}
}

func (w *Worker) count(n int, now time.Time) {
	if n == 0 {
		return
	}
	if w.running.started.IsZero() {
		w.running.started = now
	}
	w.running.records += n
	w.status.processed.Add(int64(n))
}

// failRunning gives up the running interval, whose records include one that failed. The
// sealed one, all good, is completed first.
func (w *Worker) failRunning(ctx context.Context, err error) error {
	if cerr := w.collect(ctx, true); cerr != nil {
		return errors.Join(err, cerr)
	}
	return err
}

// commitIfDue looks at the triggers. While an interval is sealed the next one goes on, up to
// its bounds; there it waits (T4).
func (w *Worker) commitIfDue(ctx context.Context) error {
	if err := w.collect(ctx, false); err != nil {
		return err
	}
	l, now := &w.cfg.Limits, w.now()
	dirty := 0
	for _, t := range w.tasks {
		dirty += t.store.DirtyBytes()
	}
	full := dirty >= l.MaxDirtyBytes || w.box.bytes >= l.MaxHeldBytes || (l.CommitRecords > 0 && w.running.records >= l.CommitRecords)
	due := full || w.commitNow || (!w.running.started.IsZero() && now.Sub(w.running.started) >= l.CommitInterval)
	if !due {
		return w.commitIdle(ctx, now)
	}
	if w.sealed != nil && full {
		if err := w.collect(ctx, true); err != nil {
			return err
		}
	}
	if w.sealed != nil {
		return nil
	}
	return w.sealIfMoved(ctx)
}

// commitIdle commits positions that moved without a record (behind transaction markers), and
// those that did not move for a long time, so that the broker does not expire them.
func (w *Worker) commitIdle(ctx context.Context, now time.Time) error {
	if w.sealed != nil || !w.running.started.IsZero() {
		return nil
	}
	for _, t := range w.tasks {
		if t.moved() || now.Sub(t.lastCommit) >= w.cfg.Limits.IdleCommitInterval {
			w.running.started = now // commits when the interval is over
			return nil
		}
	}
	return nil
}

// sealIfMoved seals the running interval and starts its commit.
func (w *Worker) sealIfMoved(ctx context.Context) error {
	if err := w.sendDirect(ctx); err != nil {
		return err
	}
	iv, now := w.running, w.now()
	for _, t := range w.tasks {
		if !t.moved() && now.Sub(t.lastCommit) < w.cfg.Limits.IdleCommitInterval {
			continue
		}
		s, err := t.seal()
		if err != nil {
			return err
		}
		t.lastCommit = now
		iv.tasks = append(iv.tasks, s)
	}
	w.commitNow = false
	w.running = newInterval()
	if len(iv.tasks) == 0 && w.box.bytes == 0 {
		return nil
	}
	iv.held = w.box.take()
	w.sealed = iv
	go func() { w.results <- w.commit(ctx, iv) }() // ended by collect or await
	return nil
}

// collect takes the result of the commit under way, waiting for it if asked to, and makes it
// public: only then does the owner let go of the sealed overlays.
func (w *Worker) collect(ctx context.Context, wait bool) error {
	if w.sealed == nil {
		return nil
	}
	var res commitResult
	if wait {
		res = <-w.results
	} else {
		select {
		case res = <-w.results:
		default:
			return nil
		}
	}
	w.sealed = nil
	if res.err != nil && !res.transacted && kafka.IsClass(res.err, kafka.ClassInDoubt) {
		res = w.resolve(ctx, res)
	}
	if res.err != nil {
		return fmt.Errorf("commit: %w", res.err)
	}
	for _, s := range res.interval.tasks {
		s.task.store.Release(s.sealed)
	}
	w.commits++
	w.status.committed(res)
	return nil
}

// resolve ends the doubt about a transaction that got no answer: the id in the group's
// metadata says whether it was committed.
func (w *Worker) resolve(ctx context.Context, res commitResult) commitResult {
	w.log.Warn("commit in doubt", "error", res.err)
	err := w.retry(ctx, "end the doubt about a commit", w.txn.Init)
	if err != nil {
		res.err = err
		return res
	}
	var committed bool
	err = w.retry(ctx, "read the group's offsets", func(ctx context.Context) (err error) {
		committed, err = w.groupHas(ctx, res.interval)
		return err
	})
	switch {
	case err != nil:
		res.err = err
	case committed && res.interval.changes.failed() == nil:
		w.log.Info("the commit in doubt was committed")
		res.transacted, res.err = true, apply(res.interval)
	}
	return res
}

// groupHas tells whether the group's offsets carry the ids of the sealed interval.
func (w *Worker) groupHas(ctx context.Context, iv *interval) (bool, error) {
	for _, s := range iv.tasks {
		got, err := w.cfg.Admin.CommittedOffsets(ctx, w.cfg.AppID, s.task.partitions()...)
		if err != nil {
			return false, err
		}
		for _, o := range s.offsets {
			m, err := DecodeMetadata(got[o.TopicPartition].Metadata)
			if err != nil || m.ID != s.progress.ID {
				return false, nil
			}
		}
	}
	return len(iv.tasks) > 0, nil
}
