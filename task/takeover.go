package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// errStopped ends a take-over because the worker is being stopped.
var errStopped = errors.New("stopped")

// maxOffsetChanges is how often the group's offsets may change under a take-over. A change
// means that the last owner's commit became visible late; one owner has one commit in flight.
const maxOffsetChanges = 5

// takeOver brings all tasks of the worker from wherever they are to their first record. The
// order is what makes it right:
//
//  1. whoever held the tasks before is done: the transactional ids are initialised (Run), and
//     the group knows no other member by our name;
//  2. the group's offsets, *require stable*: an open transaction of the last owner that holds
//     offsets is waited for;
//  3. the changelogs' high watermark, then restore read_committed until the position is there:
//     right after an answered commit the read_committed end may be short of it;
//  4. the group's offsets again: if they changed, a commit became visible in between: back to 2;
//  5. the comparison, and only then the first record (T7).
func (w *Worker) takeOver(ctx context.Context) error {
	w.status.state("restoring")
	group, err := w.groupOffsets(ctx)
	if err != nil {
		return err
	}
	var plans []*plan
	for changes := 0; ; changes++ {
		if plans, err = w.compareAll(ctx, group); err != nil {
			return err
		}
		if err := w.restore(ctx, plans); err != nil {
			return err
		}
		again, err := w.groupOffsets(ctx)
		if err != nil {
			return err
		}
		if maps.Equal(group, again) {
			break
		}
		if changes == maxOffsetChanges {
			return fmt.Errorf("%w: the group's offsets changed %d times during the take-over: another process commits for group %s", ErrLost, changes, w.cfg.AppID)
		}
		group = again
	}
	failpoint.Hit("restored")
	if err := w.resolvePositions(ctx, plans); err != nil {
		return err
	}
	if err := w.commitInitial(ctx, plans); err != nil {
		return err
	}
	return w.startTasks(ctx, plans)
}

func (w *Worker) groupOffsets(ctx context.Context) (got map[kafka.TopicPartition]kafka.CommittedOffset, err error) {
	var tps []kafka.TopicPartition
	for tp := range w.queues {
		tps = append(tps, tp)
	}
	err = w.retry(ctx, "read the group's offsets", func(ctx context.Context) error {
		got, err = w.cfg.Admin.CommittedOffsets(ctx, w.cfg.AppID, tps...)
		return err
	})
	return got, err
}

// compareAll plans every task, and checks the plans against the changelogs' ends.
func (w *Worker) compareAll(ctx context.Context, group map[kafka.TopicPartition]kafka.CommittedOffset) ([]*plan, error) {
	var plans []*plan
	var changelogs []kafka.TopicPartition
	for _, t := range w.tasks {
		p, err := t.compare(group)
		if err != nil {
			return nil, &Error{Task: t.id, Err: err}
		}
		w.status.task(t.id, func(s *TaskStatus) { s.Found = p.found() })
		plans = append(plans, p)
		for _, s := range p.stores {
			changelogs = append(changelogs, s.tp)
		}
		for _, name := range p.empty {
			changelogs = append(changelogs, t.changelog(name))
		}
	}
	if len(changelogs) == 0 {
		return plans, nil
	}
	starts, ends, err := w.logBounds(ctx, changelogs)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		if err := p.bound(starts, ends); err != nil {
			return nil, &Error{Task: p.task.id, Err: err}
		}
	}
	return plans, nil
}

func (p *plan) found() Found {
	st := p.task.store
	f := Found{CommitID: st.CommitID(), Changelog: st.CommittedOffsets(), Positions: map[kafka.TopicPartition]int64{}, WALBytes: st.OpenStats().ReplayedBytes}
	f.Existing = !f.CommitID.IsZero()
	for _, o := range f.Changelog {
		f.Existing = f.Existing || !o.IsAbsent() // a restore that was killed
	}
	for tp, o := range p.group {
		f.Positions[tp] = o.Offset
	}
	return f
}

func (w *Worker) logBounds(ctx context.Context, tps []kafka.TopicPartition) (starts, ends map[kafka.TopicPartition]int64, err error) {
	err = w.retry(ctx, "read the changelogs' ends", func(ctx context.Context) error {
		if starts, err = w.cfg.Admin.ListOffsets(ctx, kafka.Earliest, tps...); err != nil {
			return err
		}
		ends, err = w.cfg.Admin.ListOffsets(ctx, kafka.HighWatermark, tps...)
		return err
	})
	return starts, ends, err
}

// bound gives each restore its first and last offset. An offset outside the log concerns that
// store only: it is restored from the start, into an empty store, never over old data.
func (p *plan) bound(starts, ends map[kafka.TopicPartition]int64) error {
	for _, name := range p.empty {
		if tp := p.task.changelog(name); starts[tp] != ends[tp] {
			return fmt.Errorf("%w: changelog %v holds offsets %d to %d, but the group's offsets do not know store %s; delete the topic if its content is not wanted", ErrOffsetsLost, tp, starts[tp], ends[tp], name)
		}
	}
	for _, s := range p.stores {
		from, ok := s.from.Next()
		if !ok || from < starts[s.tp] || from > ends[s.tp] {
			if ok && !s.clear {
				s.clear, s.why = true, "the stored offset does not fit the changelog"
			}
			from = starts[s.tp]
		}
		s.status = RestoreStatus{Store: s.name, Changelog: s.tp, From: from, Next: from, End: ends[s.tp], Started: time.Now()}
	}
	return nil
}

// resolvePositions decides where each source partition starts: at the group's offset, or, for
// one without, at the configured start position.
func (w *Worker) resolvePositions(ctx context.Context, plans []*plan) error {
	var fresh []kafka.TopicPartition
	for _, p := range plans {
		fresh = append(fresh, p.fresh...)
	}
	var starts map[kafka.TopicPartition]int64
	if len(fresh) > 0 {
		err := w.retry(ctx, "resolve start positions", func(ctx context.Context) (err error) {
			starts, err = w.cfg.Admin.ListOffsets(ctx, w.cfg.Start.Spec, fresh...)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, p := range plans {
		p.position(starts)
	}
	return nil
}

func (p *plan) position(starts map[kafka.TopicPartition]int64) {
	t := p.task
	t.streamTime = t.store.StreamTime()
	for _, q := range t.queues {
		if o, ok := p.group[q.tp]; ok {
			m := p.meta[q.tp]
			q.position, q.partitionTime = o.Offset, m.PartitionTime
			t.streamTime = max(t.streamTime, m.StreamTime, m.PartitionTime)
		} else {
			q.position = starts[q.tp]
		}
		q.fetched = q.position
	}
	// Never backwards, whatever was lost: the store, the group's metadata or the changelog.
	t.epoch = 1 + max(t.epoch, t.store.CommitID().Epoch, p.id.Epoch)
	t.number = 0
}

// commitInitial commits the positions of tasks that have none with an id yet, before the
// first poll: otherwise a group that starts at the end would lose what arrives before its
// first commit.
func (w *Worker) commitInitial(ctx context.Context, plans []*plan) error {
	var offsets []kafka.CommittedOffset
	for _, p := range plans {
		if !p.initial {
			continue
		}
		p.id = statestore.CommitID{Epoch: p.task.epoch}
		o, err := p.task.offsets(p.id)
		if err != nil {
			return err
		}
		offsets = append(offsets, o...)
	}
	if len(offsets) == 0 {
		return nil
	}
	txn := w.txn
	if err := txn.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := w.sendOffsets(ctx, offsets); err != nil {
		return err
	}
	cctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.RetryTimeout)
	defer cancel()
	if err := txn.Commit(cctx); err != nil {
		return fmt.Errorf("commit the start positions: %w", err)
	}
	failpoint.Hit("start-committed")
	return nil
}

// startTasks makes the stores complete at the group's commit, builds the running copies and
// assigns the sources.
func (w *Worker) startTasks(ctx context.Context, plans []*plan) error {
	from := map[kafka.TopicPartition]int64{}
	for _, p := range plans {
		if err := w.startTask(p); err != nil {
			var failed *Error
			if errors.As(err, &failed) {
				return err
			}
			return &Error{Task: p.task.id, Err: err}
		}
		for _, q := range p.task.queues {
			from[q.tp] = q.position
			p.task.sealedAt[q.tp] = q.position
		}
	}
	if err := w.consumer.Assign(ctx, from); err != nil {
		return fmt.Errorf("assign sources: %w", err)
	}
	return nil
}

func (w *Worker) startTask(p *plan) (err error) {
	t := p.task
	complete, err := t.complete()
	if err != nil {
		return err
	}
	if !complete || t.store.CommitID() != p.id || len(p.stores) > 0 {
		progress := statestore.Progress{ID: p.id, StreamTime: t.streamTime}
		for _, q := range t.queues {
			progress.Positions = append(progress.Positions, statestore.Position{Topic: q.tp.Topic, Partition: q.tp.Partition, Next: q.position})
		}
		next := map[string]statestore.Offset{}
		for _, s := range p.stores {
			next[s.name] = statestore.At(s.status.Next)
		}
		if err := t.store.Complete(progress, next); err != nil {
			return fmt.Errorf("complete restore: %w", err)
		}
	}
	t.lastCommit = w.now()
	send := func(o processor.Output) error {
		t.wrote = true
		t.out += len(o.Key) + len(o.Value) + recordOverhead
		return w.send(o)
	}
	env := processor.Env{TaskID: t.id, Store: t.store.KeyValue, Send: send, Commit: func() { w.commitNow = true }, Now: w.now,
		Dropped: t.drops(w.log), ExtractTimestamp: w.cfg.ExtractTimestamp}
	streamTime := time.Time{}
	if t.streamTime >= 0 {
		streamTime = time.UnixMilli(t.streamTime)
	}
	t.inst, err = t.sub.NewInstance(env, streamTime)
	w.status.task(t.id, func(s *TaskStatus) {
		s.CommitID, s.Changelog = t.store.CommitID(), t.store.CommittedOffsets()
		s.Committed = map[kafka.TopicPartition]int64{}
		for _, q := range t.queues {
			s.Committed[q.tp] = q.position
		}
	})
	return err
}

// complete tells whether every store holds all that its commit says.
func (t *Task) complete() (bool, error) {
	stores, err := t.stores()
	for _, s := range stores {
		if !s.Complete {
			return false, err
		}
	}
	return true, err
}
