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
	for _, t := range w.tasks {
		for _, q := range t.queues {
			if q.len() > 0 {
				wait = min(wait, shortPoll) // the task waits for another partition
			}
		}
		if at, ok := t.inst.NextWallClock(); ok {
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
