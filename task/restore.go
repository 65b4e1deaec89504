package task

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// activeRestores is how many changelogs one restoration reads at a time. The smallest begin, so that
// large ones, however many, hold up only each other; among those that are read the broker shares out
// each fetch.
const activeRestores = 16

// restoration applies to stores what their changelogs hold beyond the stored offsets, in batches
// that carry the offset: killed at any point it goes on from there. It uses the consumer of its worker, whose
// goroutine owns it, and reads one poll ahead of what it applies.
type restoration struct {
	w       *Worker
	waiting []*restoring // the smallest first
	active  map[kafka.TopicPartition]*restoring
	ending  []*restoring  // all is read, and the last run is being written
	left    map[*plan]int // stores to go
	done    []*plan       // those with none left, until taken
	ahead   *readAhead
	records []statestore.RestoreRecord
	told    time.Time // last progress in the log
}

// restoring is the restore of one store.
type restoring struct {
	plan  *plan
	task  *Task
	store *storePlan
	pace  pace
	read  bool                   // its changelog is assigned
	runs  *statestore.RunRestore // nil: in batches
	over  <-chan struct{}        // closed when the last run is written
	told  int64                  // offset behind the last run that is known to be written
	// The last header decoded, and its schema version: most records of a batch share it.
	seen   []byte
	schema uint32
}

func newRestoration(w *Worker) *restoration {
	return &restoration{w: w, active: map[kafka.TopicPartition]*restoring{}, left: map[*plan]int{}, ahead: newReadAhead(), told: time.Now()}
}

// add takes over the restore of tasks. Stores that are to begin anew are emptied.
func (r *restoration) add(plans ...*plan) error {
	for _, p := range plans {
		for _, s := range p.stores {
			x := &restoring{plan: p, task: p.task, store: s}
			if s.clear {
				r.w.log.Warn("restore from the start", "task", p.task.id.String(), "store", s.name, "changelog", s.tp.String(), "reason", s.why, "offset", s.from.String())
				if err := r.w.keepCopy(p.task, s); err != nil {
					return &Error{Task: p.task.id, Err: err}
				}
				if err := p.task.store.Clear(s.name); err != nil {
					return &Error{Task: p.task.id, Err: err}
				}
				p.task.tellCleared(s.name)
			}
			if s.status.Next >= s.status.End {
				s.status.Took = time.Since(s.status.Started)
				r.report(x)
				continue
			}
			r.left[p]++
			r.waiting = append(r.waiting, x)
			r.report(x)
		}
		if r.left[p] == 0 {
			r.done = append(r.done, p)
		}
	}
	slices.SortStableFunc(r.waiting, func(a, b *restoring) int { return cmp.Compare(a.store.status.Remaining(), b.store.status.Remaining()) })
	return nil
}

// take gives the plans that were finished since it was asked last.
func (r *restoration) take() []*plan {
	done := r.done
	r.done = nil
	return done
}

// over tells that nothing is left to restore.
func (r *restoration) over() bool { return len(r.waiting)+len(r.active)+len(r.ending) == 0 }

// begin assigns changelogs, up to the bound. Those whose turn it is not, because other large restores
// have the memory for theirs, let others pass.
func (r *restoration) begin(ctx context.Context) error {
	from := map[kafka.TopicPartition]int64{}
	var waiting []*restoring
	for i, x := range r.waiting {
		if len(r.active) == activeRestores {
			waiting = append(waiting, r.waiting[i:]...)
			break
		}
		if err := x.open(); errors.Is(err, statestore.ErrRestoresBusy) {
			waiting = append(waiting, x)
			continue
		} else if err != nil {
			return err
		}
		r.active[x.store.tp] = x
		from[x.store.tp] = x.store.status.Next
	}
	r.waiting = waiting
	if len(from) == 0 {
		return nil
	}
	if err := r.w.consumer.Assign(ctx, from); err != nil {
		return fmt.Errorf("assign changelogs: %w", err)
	}
	for tp := range from {
		x := r.active[tp]
		x.read = true
		x.pace.begin(&x.store.status)
		r.w.tellRestore(x.task, RestoreStarted, x.store)
	}
	return nil
}

// step applies what one poll brought, while the next is read. When all is read it waits for a last run.
func (r *restoration) step(ctx context.Context) error {
	if err := r.goesOn(); err != nil {
		return err
	}
	if err := r.finishWritten(); err != nil {
		return err
	}
	if !r.ahead.underWay() {
		if err := r.begin(ctx); err != nil {
			return err
		}
		if len(r.active) == 0 {
			return r.awaitWritten(ctx)
		}
		r.ahead.begin(ctx, r.w.consumer)
	}
	poll, err := r.ahead.take()
	if err != nil {
		return fmt.Errorf("poll changelogs: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.goesOn() == nil { // else what came is the last
		if err := r.readOn(ctx, poll); err != nil {
			return err
		}
	}
	for i := range poll.Partitions {
		if err := r.apply(&poll.Partitions[i]); err != nil {
			return err
		}
	}
	r.tell()
	return nil
}

// goesOn gives the reason to end the restoration before it is over.
func (r *restoration) goesOn() error {
	if r.w.stopping() {
		return errStopped
	}
	if m := r.w.cfg.Member(); !m.Same(r.w.cfg.Started) {
		return fmt.Errorf("%w: member %q is now %q", ErrLost, r.w.cfg.Started.ID, m.ID)
	}
	return nil
}

// readOn begins the next poll, for what got does not bring to its end. The changelogs of which it has all are
// given back now, because while a poll is under way the consumer is not the restoration's.
func (r *restoration) readOn(ctx context.Context, got *kafka.Poll) error {
	reading := len(r.active)
	for i := range got.Partitions {
		f := &got.Partitions[i]
		if x := r.active[f.TopicPartition]; x != nil && f.Err == nil && f.Next >= x.store.status.End {
			reading--
			if err := r.unassign(x); err != nil {
				return err
			}
		}
	}
	if reading == 0 {
		return nil
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.ahead.begin(ctx, r.w.consumer)
	return nil
}

func (r *restoration) unassign(x *restoring) error {
	if !x.read {
		return nil
	}
	x.read = false
	if err := r.w.consumer.Unassign(x.store.tp); err != nil {
		return fmt.Errorf("unassign %v: %w", x.store.tp, err)
	}
	return nil
}

// end gives back what is still assigned: that of stores left by a stop or an error.
func (r *restoration) end() error {
	r.ahead.end()
	var err error
	for _, x := range r.ending {
		r.active[x.store.tp] = x
	}
	r.ending = nil
	for _, x := range r.active {
		if cerr := x.close(); err == nil {
			err = cerr
		}
		r.w.tellRestore(x.task, RestoreSuspended, x.store)
		if uerr := r.unassign(x); err == nil {
			err = uerr
		}
	}
	return err
}

// apply writes what a poll brought of one changelog.
func (r *restoration) apply(f *kafka.Fetched) error {
	x := r.active[f.TopicPartition]
	if x == nil {
		return nil
	}
	if f.Err != nil {
		return x.fail(fmt.Errorf("read %v: %w", f.TopicPartition, f.Err))
	}
	if x.store.still && len(f.Records) > 0 {
		return &Error{Task: x.task.id, Err: fmt.Errorf("use-store is not possible: changelog %v goes on behind the store, up to record %d: choose accept-reset, which restores that", f.TopicPartition, f.Records[0].Offset)}
	}
	if err := r.decode(x, f); err != nil {
		return err
	}
	if err := x.write(r.records, f.Next); err != nil {
		return x.fail(err)
	}
	s := &x.store.status
	s.Next = f.Next
	s.Records += int64(len(f.Records))
	switch {
	case s.Next >= s.End && x.runs != nil:
		return r.endRuns(x)
	case s.Next >= s.End:
		return r.finish(x)
	}
	if x.pace.look(s) {
		r.w.tellRestore(x.task, RestoreProgress, x.store)
	}
	r.report(x)
	return nil
}

// write brings records to the store: at once, or when there is enough for a run or it was the last.
func (x *restoring) write(records []statestore.RestoreRecord, next int64) error {
	if x.runs == nil {
		if err := x.task.store.Restore(x.store.name, records, next); err != nil {
			return err
		}
		x.task.tellRestored(x.store.name, next)
		failpoint.Hit("restore-batch")
		return nil
	}
	err := x.runs.Add(records, next)
	x.tellWritten()
	return err
}

// close writes what was collected and gives the memory back.
func (x *restoring) close() error {
	if x.runs == nil {
		return nil
	}
	err := x.runs.Flush()
	x.tellWritten()
	x.runs.Close()
	x.runs = nil
	if err != nil {
		return x.fail(err)
	}
	return nil
}

// decode makes r.records of what was fetched. They share its memory.
func (r *restoration) decode(x *restoring, f *kafka.Fetched) error {
	r.records = r.records[:0]
	for i := range f.Records {
		rec := &f.Records[i]
		schema, err := x.header(rec.Headers)
		if err != nil {
			return x.fail(fmt.Errorf("record %v@%d: %w", f.TopicPartition, rec.Offset, err))
		}
		if rec.Key == nil {
			return x.fail(fmt.Errorf("record %v@%d has a null key: it is no changelog record", f.TopicPartition, rec.Offset))
		}
		r.records = append(r.records, statestore.RestoreRecord{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp, Schema: schema})
	}
	return nil
}

func (x *restoring) fail(err error) error {
	return &Error{Task: x.task.id, Err: fmt.Errorf("restore store %s: %w", x.store.name, err)}
}

// finish ends the restore of a store whose position is at the end.
func (r *restoration) finish(x *restoring) error {
	if err := x.close(); err != nil {
		return err
	}
	s := &x.store.status
	s.Took = time.Since(s.Started)
	x.pace.end(s)
	delete(r.active, x.store.tp)
	if r.left[x.plan]--; r.left[x.plan] == 0 {
		delete(r.left, x.plan)
		r.done = append(r.done, x.plan)
	}
	r.report(x)
	r.w.tellRestore(x.task, RestoreEnded, x.store)
	return r.unassign(x)
}

// header keeps the largest writer epoch seen: the task's own will be larger. It gives the
// schema version of the record's value.
func (x *restoring) header(headers []kafka.Header) (schema uint32, err error) {
	for _, h := range headers {
		if h.Key != HeaderKey {
			continue
		}
		if bytes.Equal(h.Value, x.seen) {
			return x.schema, nil
		}
		c, err := decodeChangeHeader(h.Value)
		if err != nil {
			return 0, err
		}
		x.seen, x.schema = append(x.seen[:0], h.Value...), c.Schema
		x.task.epoch = max(x.task.epoch, c.ID.Epoch)
		return c.Schema, nil
	}
	return 0, nil
}
