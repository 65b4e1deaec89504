package task

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// pollOnce fetches once, and puts what came into the queues.
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
	if w.seedsBeside() {
		wait = seedPoll
	}
	for _, t := range w.tasks {
		for _, q := range t.queues {
			if q.len() > 0 {
				wait = min(wait, shortPoll) // the task waits for another partition
			}
		}
		if at, ok := t.inst.NextWallClock(); ok && t.replay == nil {
			wait = min(wait, at.Sub(now))
		}
	}
	if !w.running.started.IsZero() && w.sealed == nil {
		wait = min(wait, w.running.started.Add(w.cfg.Limits.CommitInterval).Sub(now))
	}
	return max(wait, shortPoll)
}

// shortPoll is the least time of a poll: what is always overdue must not keep records from being
// read.
const shortPoll = time.Millisecond

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

// partitionError ends the task that reads a source partition, or has it go on where the log starts, if that is the choice.
func (w *Worker) partitionError(ctx context.Context, q *queue, err error) error {
	if !kafka.IsClass(err, kafka.ClassOffsetOutOfRange) {
		return fmt.Errorf("read %v: %w", q.tp, err)
	}
	t := w.taskOf(q)
	starts, lerr := w.cfg.Admin.ListOffsets(ctx, kafka.Earliest, q.tp)
	start := starts[q.tp]
	if lerr != nil || start <= q.fetched {
		return &Error{Task: t.id, Err: fmt.Errorf("read %v at offset %d: %w", q.tp, q.fetched, err)}
	}
	if w.cfg.WhileRunning != AcceptReset || t.replay != nil {
		return &Error{Task: t.id, Err: fmt.Errorf("%w: %w", recordsGone(q.tp, "what was read next", q.fetched, start), err)}
	}
	w.tellSkipped(t, q.tp, q.fetched, start)
	if err := w.consumer.Unassign(q.tp); err != nil {
		return fmt.Errorf("unassign %v: %w", q.tp, err)
	}
	if err := w.consumer.Assign(ctx, map[kafka.TopicPartition]int64{q.tp: start}); err != nil {
		return fmt.Errorf("assign %v: %w", q.tp, err)
	}
	q.paused = false
	q.offer(&kafka.Fetched{TopicPartition: q.tp, Next: start})
	return nil
}

func (w *Worker) taskOf(q *queue) *Task {
	for _, t := range w.tasks {
		if t.queue(q.tp) == q {
			return t
		}
	}
	return nil
}
