package task

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// A coordinator in trouble (resigning, loading) may answer that a group has no offsets. Believed, that begins an application
// at its start position with whatever state there is. So an answer that lacks offsets of a task with any trace of an
// earlier life is asked for again, a bounded number of times; without a trace the group is new, and nothing is waited for.

// emptyWaits are the pauses before it is asked again: 3.1 s together, longer than a coordinator takes to resign.
var emptyWaits = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond}

// groupOffsets asks for those of the tasks' sources only: a transaction of this worker with offsets of
// other tasks is not waited for.
func (w *Worker) groupOffsets(ctx context.Context, tasks []*Task) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	got, err := w.askGroup(ctx, tasks)
	for i, wait := range w.emptyWaits {
		if err != nil {
			return nil, err
		}
		t, trace, err := w.suspicious(ctx, tasks, got)
		if t == nil || err != nil {
			return got, err
		}
		if i == 0 { // once: a first start that has failed early looks like this for ever after
			w.log.Info("the group has no offsets for a task that had an earlier life: asking again before that is believed", "task", t.id.String(), "lacks", fmt.Sprint(t.lacking(got)), "trace", trace,
				"at_most", total(w.emptyWaits))
		}
		w.idle(ctx, wait)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if w.stopping() {
			return nil, fmt.Errorf("read the group's offsets: %w", errStopped)
		}
		if got, err = w.askGroup(ctx, tasks); err != nil {
			return nil, err
		}
	}
	for _, t := range tasks {
		t.asked = len(t.lacking(got)) > 0 // that is how it is; step 4 need not wait once more
	}
	return got, err
}

func total(waits []time.Duration) (sum time.Duration) {
	for _, d := range waits {
		sum += d
	}
	return sum
}

func (w *Worker) askGroup(ctx context.Context, tasks []*Task) (got map[kafka.TopicPartition]kafka.CommittedOffset, err error) {
	var tps []kafka.TopicPartition
	for _, t := range tasks {
		tps = append(tps, t.partitions()...)
	}
	if len(tps) == 0 {
		return nil, nil
	}
	failpoint.Hit("opened")
	err = w.retry(ctx, "read the group's offsets", func(ctx context.Context) error {
		got, err = w.cfg.Admin.CommittedOffsets(ctx, w.cfg.group(), tps...)
		return err
	})
	return got, err
}

// lacking are the partitions of a task without offset.
func (t *Task) lacking(got map[kafka.TopicPartition]kafka.CommittedOffset) (tps []kafka.TopicPartition) {
	for _, tp := range t.partitions() {
		if _, ok := got[tp]; !ok {
			tps = append(tps, tp)
		}
	}
	return tps
}

// suspicious finds a task for which offsets are lacking that should be there, with what tells that; nil: there is none.
func (w *Worker) suspicious(ctx context.Context, tasks []*Task, got map[kafka.TopicPartition]kafka.CommittedOffset) (*Task, string, error) {
	var unknown []*Task
	others := othersTrace(got)
	for _, t := range tasks {
		lacking := t.lacking(got)
		if len(lacking) == 0 || t.asked {
			continue
		}
		if len(lacking) < len(t.queues) {
			if t.covers(lacking, got) {
				return t, "its other offsets cover these partitions", nil
			}
			continue // an input that is new
		}
		switch id := t.store.CommitID(); {
		case id != statestore.CommitID{} || len(t.store.Positions()) > 0:
			return t, fmt.Sprintf("the store of this host is at commit %v with positions %v", id, t.store.Positions()), nil
		case w.cfg.Existing:
			return t, "the application ran before", nil
		case others != "":
			return t, others, nil
		}
		unknown = append(unknown, t)
	}
	return w.written(ctx, unknown)
}

// covers tells whether the offsets that a task has name an input of which one is lacking, or are another program's.
func (t *Task) covers(lacking []kafka.TopicPartition, got map[kafka.TopicPartition]kafka.CommittedOffset) bool {
	for _, q := range t.queues {
		o, ok := got[q.tp]
		if !ok {
			continue
		}
		m, err := DecodeMetadata(o.Metadata)
		if err != nil {
			return true
		}
		named := coveredMap(m.Sources)
		for _, tp := range lacking {
			if _, listed := named[HashName(tp.Topic)]; listed {
				return true
			}
		}
	}
	return false
}

// othersTrace tells of offsets of other tasks that are not of this group's first life: epoch 1 is what the
// workers of a new group are just committing.
func othersTrace(got map[kafka.TopicPartition]kafka.CommittedOffset) string {
	for tp, o := range got {
		switch m, err := DecodeMetadata(o.Metadata); {
		case err != nil:
			return fmt.Sprintf("%v has an offset of another program", tp)
		case m.ID.Epoch > 1:
			return fmt.Sprintf("%v has the offset of commit %v", tp, m.ID)
		}
	}
	return ""
}

// written finds a task whose changelogs were ever written.
func (w *Worker) written(ctx context.Context, tasks []*Task) (*Task, string, error) {
	var tps []kafka.TopicPartition
	for _, t := range tasks {
		for _, name := range t.logged() {
			tps = append(tps, t.changelog(name))
		}
	}
	if len(tps) == 0 {
		return nil, "", nil
	}
	var ends map[kafka.TopicPartition]int64
	err := w.retry(ctx, "read the changelogs' ends", func(ctx context.Context) (err error) {
		ends, err = w.cfg.Admin.ListOffsets(ctx, kafka.HighWatermark, tps...)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	for _, t := range tasks {
		for _, name := range t.logged() {
			if tp := t.changelog(name); ends[tp] > 0 {
				return t, fmt.Sprintf("changelog %v was written up to %d", tp, ends[tp]), nil
			}
		}
	}
	return nil, "", nil
}
