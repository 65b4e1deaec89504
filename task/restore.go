package task

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// restore applies to each store what its changelog holds beyond the stored offset, in batches
// that carry the offset: killed at any point it goes on from there.
func (w *Worker) restore(ctx context.Context, plans []*plan) error {
	r := restoration{w: w, active: map[kafka.TopicPartition]*restoring{}}
	from := map[kafka.TopicPartition]int64{}
	for _, p := range plans {
		for _, s := range p.stores {
			if s.clear {
				w.log.Warn("restore from the start", "task", p.task.id.String(), "store", s.name, "changelog", s.tp.String(), "reason", s.why, "offset", s.from.String())
				if err := p.task.store.Clear(s.name); err != nil {
					return &Error{Task: p.task.id, Err: err}
				}
			}
			if s.status.Next >= s.status.End {
				s.status.Took = time.Since(s.status.Started)
				r.report(p.task, s)
				continue
			}
			r.active[s.tp] = &restoring{task: p.task, store: s}
			from[s.tp] = s.status.Next
			r.report(p.task, s)
		}
	}
	if len(from) == 0 {
		return nil
	}
	if err := w.consumer.Assign(ctx, from); err != nil {
		return fmt.Errorf("assign changelogs: %w", err)
	}
	err := r.run(ctx)
	for tp := range r.active { // those left by an error
		if uerr := w.consumer.Unassign(tp); err == nil && uerr != nil {
			err = uerr
		}
	}
	return err
}

// restoration is a running restore of several stores.
type restoration struct {
	w       *Worker
	active  map[kafka.TopicPartition]*restoring
	records []statestore.RestoreRecord
	told    time.Time // last progress in the log
}

type restoring struct {
	task  *Task
	store *storePlan
	seen  []byte // the last header decoded: most records of a batch share it
}

func (r *restoration) run(ctx context.Context) error {
	r.told = time.Now()
	for len(r.active) > 0 {
		if r.w.stopping() {
			return errStopped
		}
		if m := r.w.cfg.Member(); !m.Same(r.w.cfg.Started) {
			return fmt.Errorf("%w: member %q is now %q", ErrLost, r.w.cfg.Started.ID, m.ID)
		}
		pctx, cancel := context.WithTimeout(ctx, idlePoll)
		err := r.w.consumer.Poll(pctx, &r.w.poll)
		cancel()
		if err != nil {
			return fmt.Errorf("poll changelogs: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range r.w.poll.Partitions {
			if err := r.apply(&r.w.poll.Partitions[i]); err != nil {
				return err
			}
		}
		r.tell()
	}
	return nil
}

// apply writes what a poll brought of one changelog.
func (r *restoration) apply(f *kafka.Fetched) error {
	x := r.active[f.TopicPartition]
	if x == nil {
		return nil
	}
	if f.Err != nil {
		return &Error{Task: x.task.id, Err: fmt.Errorf("restore store %s from %v: %w", x.store.name, f.TopicPartition, f.Err)}
	}
	r.records = r.records[:0]
	for i := range f.Records {
		rec := &f.Records[i]
		if err := x.epoch(rec.Headers); err != nil {
			return &Error{Task: x.task.id, Err: fmt.Errorf("restore store %s: record %v@%d: %w", x.store.name, f.TopicPartition, rec.Offset, err)}
		}
		if rec.Key == nil {
			return &Error{Task: x.task.id, Err: fmt.Errorf("restore store %s: record %v@%d has a null key: it is no changelog record", x.store.name, f.TopicPartition, rec.Offset)}
		}
		r.records = append(r.records, statestore.RestoreRecord{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp})
	}
	if err := x.task.store.Restore(x.store.name, r.records, f.Next); err != nil {
		return &Error{Task: x.task.id, Err: fmt.Errorf("restore store %s: %w", x.store.name, err)}
	}
	failpoint.Hit("restore-batch")
	s := &x.store.status
	s.Next = f.Next
	s.Records += int64(len(f.Records))
	if s.Next >= s.End {
		s.Took = time.Since(s.Started)
		delete(r.active, f.TopicPartition)
		if err := r.w.consumer.Unassign(f.TopicPartition); err != nil {
			return fmt.Errorf("unassign %v: %w", f.TopicPartition, err)
		}
	}
	r.report(x.task, x.store)
	return nil
}

// epoch keeps the largest writer epoch seen: the task's own will be larger.
func (x *restoring) epoch(headers []kafka.Header) error {
	for _, h := range headers {
		if h.Key != HeaderKey || bytes.Equal(h.Value, x.seen) {
			continue
		}
		c, err := decodeChangeHeader(h.Value)
		if err != nil {
			return err
		}
		x.seen = append(x.seen[:0], h.Value...)
		x.task.epoch = max(x.task.epoch, c.ID.Epoch)
	}
	return nil
}

func (r *restoration) report(t *Task, p *storePlan) {
	r.w.status.task(t.id, func(s *TaskStatus) {
		for i := range s.Restore {
			if s.Restore[i].Store == p.name {
				s.Restore[i] = p.status
				return
			}
		}
		s.Restore = append(s.Restore, p.status)
	})
}

// tell logs the progress of a restore that takes long.
func (r *restoration) tell() {
	if time.Since(r.told) < 5*time.Second {
		return
	}
	r.told = time.Now()
	for tp, x := range r.active {
		s := x.store.status
		r.w.log.Info("restoring", "task", x.task.id.String(), "store", s.Store, "changelog", tp.String(), "next", s.Next, "end", s.End, "records", s.Records)
	}
}
