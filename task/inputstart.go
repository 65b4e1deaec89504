package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
)

// ErrRecordsGone: records of an input were deleted before they were read.
var ErrRecordsGone = errors.New("records of an input are gone that were not read")

func recordsGone(tp kafka.TopicPartition, whose string, at, start int64) error {
	return fmt.Errorf("%w: read %v: %d records are gone: %s is %d, the log starts at %d; choose accept-reset to go on there without them", ErrRecordsGone, tp, start-at, whose, at, start)
}

// tellSkipped says what accept-reset leaves out.
func (w *Worker) tellSkipped(t *Task, tp kafka.TopicPartition, at, start int64) {
	w.log.Warn("records of an input were deleted before they were read: going on at the start of its log, as an operator chose", "task", t.id.String(), "input", tp.String(), "offset", at, "log_start", start, "skipped_offsets", start-at)
}

// reachInputs compares where tasks are to go on with the starts of their inputs' logs.
func (w *Worker) reachInputs(ctx context.Context, plans []*plan) error {
	var tps []kafka.TopicPartition
	for _, p := range plans {
		for tp := range p.group {
			tps = append(tps, tp)
		}
	}
	if len(tps) == 0 {
		return nil
	}
	var starts map[kafka.TopicPartition]int64
	err := w.retry(ctx, "read the inputs' starts", func(ctx context.Context) (err error) {
		starts, err = w.cfg.Admin.ListOffsets(ctx, kafka.Earliest, tps...)
		return err
	})
	if err != nil {
		return err
	}
	for _, p := range plans {
		if err := w.beginAtStarts(p, starts); err != nil {
			return &Error{Task: p.task.id, Err: err}
		}
	}
	return nil
}

// beginAtStarts takes the positions of a plan up to the starts of the logs, or tells that nobody chose that.
func (w *Worker) beginAtStarts(p *plan, starts map[kafka.TopicPartition]int64) error {
	var gone []error
	for _, q := range p.task.queues {
		o, ok := p.group[q.tp]
		start := starts[q.tp]
		if !ok || start <= o.Offset {
			continue
		}
		if p.task.cfg.OnConflict == AcceptReset {
			w.tellSkipped(p.task, q.tp, o.Offset, start)
			o.Offset = start
			p.group[q.tp] = o
			continue
		}
		gone = append(gone, recordsGone(q.tp, "the group's offset", o.Offset, start))
	}
	err := errors.Join(gone...)
	if err != nil && p.task.cfg.OnConflict == UseStore {
		return fmt.Errorf("use-store is not possible: it goes on at these offsets too: %w", err)
	}
	return err
}
