package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// errStopped ends a take-over because the worker is being stopped.
var errStopped = errors.New("stopped")

// maxOffsetChanges is how often the group's offsets may change under a take-over. A change
// means that the last owner's commit became visible late; one owner has one commit in flight.
const maxOffsetChanges = 5

// takeOver brings the tasks of the worker from wherever they are to their first record. The
// order is what makes it right, for each task:
//
//  1. whoever held the task before is done: the transactional ids are initialised (Run), and
//     the group knows no other member by our name;
//  2. the group's offsets, *require stable*: an open transaction of the last owner that holds
//     offsets is waited for; an answer that lacks some which should be there is asked for again (groupOffsets);
//  3. the changelogs' high watermark, then restore read_committed until the position is there:
//     right after an answered commit the read_committed end may be short of it;
//  4. the group's offsets again: if they changed, a commit became visible in between: back to 2;
//  5. the comparison, the commit of the new epoch, and only then the first record (T7).
//
// Tasks with much to restore, or whose stores are to be written into their changelogs, go through steps 2 to 4 beside
// the loop, and are absorbed by it for the last one.
func (w *Worker) takeOver(ctx context.Context) error {
	w.status.state("restoring")
	plans, err := w.survey(ctx, w.tasks)
	if err != nil {
		return err
	}
	ready, err := w.bringNow(ctx, w.splitLong(ctx, plans))
	if err != nil {
		return err
	}
	ready = w.splitUnseeded(ctx, ready)
	if err := w.learnEnds(ctx, w.tasks); err != nil {
		return err
	}
	if err := w.commitEpochs(ctx, ready); err != nil {
		return err
	}
	return w.startTasks(ctx, ready)
}

// splitLong has the long restores done beside the loop, and, so that these do not wait for them, the writing of changelogs, and
// gives the other plans.
func (w *Worker) splitLong(ctx context.Context, plans []*plan) (short []*plan) {
	var long, seeds []*plan
	for _, p := range plans {
		switch {
		case p.unseeded():
			seeds = append(seeds, p)
			w.remove(p.task)
		case p.remaining() > int64(w.cfg.Limits.ShortRestore):
			long = append(long, p)
			w.remove(p.task)
		default:
			short = append(short, p)
		}
	}
	w.restoreBeside(ctx, long)
	w.restoreBeside(ctx, seeds)
	return short
}

// splitUnseeded hands on those plans of which it was found out late that changelogs are to be written: the group's
// offsets had changed. They are made anew, since these have been restored.
func (w *Worker) splitUnseeded(ctx context.Context, plans []*plan) (ready []*plan) {
	var tasks []*Task
	for _, p := range plans {
		if p.unseeded() {
			tasks = append(tasks, p.task)
			w.remove(p.task)
		} else {
			ready = append(ready, p)
		}
	}
	w.bringBeside(ctx, tasks, nil)
	return ready
}

// survey is step 2, and plans each task by it.
func (w *Worker) survey(ctx context.Context, tasks []*Task) ([]*plan, error) {
	group, err := w.groupOffsets(ctx, tasks)
	if err != nil {
		return nil, err
	}
	return w.compareAll(ctx, tasks, group)
}

// bringAll is steps 2 to 4 for all tasks, and returns when they are through.
func (w *Worker) bringAll(ctx context.Context) ([]*plan, error) {
	plans, err := w.survey(ctx, w.tasks)
	if err != nil {
		return nil, err
	}
	return w.bringNow(ctx, plans)
}

// bringNow is steps 3 and 4, with the positions resolved.
func (w *Worker) bringNow(ctx context.Context, plans []*plan) (all []*plan, err error) {
	err = w.bring(ctx, plans, func(ready []*plan) error {
		all = append(all, ready...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, w.resolvePositions(ctx, all)
}

// bring is steps 3 and 4: it restores what the plans say, and calls ready with those that are
// through, as soon as they are.
func (w *Worker) bring(ctx context.Context, plans []*plan, ready func([]*plan) error) (err error) {
	r := newRestoration(w)
	defer func() {
		if eerr := r.end(); err == nil {
			err = eerr
		}
	}()
	if err := r.add(plans...); err != nil {
		return err
	}
	for {
		for len(r.done) > 0 {
			settled, err := w.settle(ctx, r)
			if err != nil {
				return err
			}
			if len(settled) > 0 {
				failpoint.Hit("restored")
				if err := ready(settled); err != nil {
					return err
				}
			}
		}
		if r.over() {
			return nil
		}
		if err := r.step(ctx); err != nil {
			return err
		}
	}
}

// settle is step 4 for the plans that are restored. It gives those whose offsets are still the same;
// the others are planned again.
func (w *Worker) settle(ctx context.Context, r *restoration) (settled []*plan, err error) {
	done := r.take()
	tasks := make([]*Task, 0, len(done))
	for _, p := range done {
		tasks = append(tasks, p.task)
	}
	group, err := w.groupOffsets(ctx, tasks)
	if err != nil {
		return nil, err
	}
	changes := map[*Task]int{}
	tasks = tasks[:0]
	for _, p := range done {
		if maps.Equal(p.read, p.task.committedOf(group)) {
			settled = append(settled, p)
			continue
		}
		if p.changes == maxOffsetChanges {
			return nil, p.besideAnother(group)
		}
		changes[p.task] = p.changes + 1
		tasks = append(tasks, p.task)
	}
	if len(tasks) == 0 {
		return settled, nil
	}
	again, err := w.compareAll(ctx, tasks, group)
	if err != nil {
		return nil, err
	}
	for _, p := range again {
		p.changes = changes[p.task]
	}
	return settled, r.add(again...)
}

// besideAnother is the error of a task whose offsets never stand still. Nothing heals that: who goes on would only be fenced
// by the other, and fence it, for ever.
func (p *plan) besideAnother(group map[kafka.TopicPartition]kafka.CommittedOffset) error {
	t := p.task
	who := "none: they carry none any more"
	var last statestore.CommitID
	for tp, o := range t.committedOf(group) {
		if m, err := DecodeMetadata(o.Metadata); err != nil {
			who = fmt.Sprintf("none: that of %v, %d, carries none", tp, o.Offset)
			break
		} else if m.ID.Compare(last) >= 0 {
			last, who = m.ID, m.ID.String()
		}
	}
	return &Error{Task: t.id, Err: fmt.Errorf("%w: the group's offsets of %v changed %d times during the take-over, the commit id of the last is %s; another process commits for group %s: stop it, and start again",
		ErrForeignCommit, t.partitions(), p.changes+1, who, t.cfg.group())}
}

// committedOf gives the group's offsets of the task's sources.
func (t *Task) committedOf(group map[kafka.TopicPartition]kafka.CommittedOffset) map[kafka.TopicPartition]kafka.CommittedOffset {
	own := map[kafka.TopicPartition]kafka.CommittedOffset{}
	for _, q := range t.queues {
		if o, ok := group[q.tp]; ok {
			own[q.tp] = o
		}
	}
	return own
}

// compareAll plans every task, and checks the plans against the changelogs' ends.
func (w *Worker) compareAll(ctx context.Context, tasks []*Task, group map[kafka.TopicPartition]kafka.CommittedOffset) ([]*plan, error) {
	failpoint.Hit("offsets-read")
	var plans []*plan
	for _, t := range tasks {
		p, err := t.compare(group)
		if err != nil {
			return nil, &Error{Task: t.id, Err: err}
		}
		p.read = t.committedOf(group)
		plans = append(plans, p)
	}
	if err := w.reachInputs(ctx, plans); err != nil {
		return nil, err
	}
	var changelogs []kafka.TopicPartition
	for _, p := range plans {
		t := p.task
		w.status.task(t.id, func(s *TaskStatus) { s.Found = p.found() })
		for _, s := range p.stores {
			changelogs = append(changelogs, s.tp)
		}
		for _, k := range p.kept {
			changelogs = append(changelogs, k.tp)
		}
		for _, name := range p.empty {
			changelogs = append(changelogs, t.changelog(name))
		}
	}
	if err := w.prepareReplays(ctx, plans); err != nil {
		return nil, err
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
		if err := w.guardTombstones(ctx, p, starts); err != nil {
			return nil, err
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
	p.seedKept(starts, ends)
	for _, name := range p.empty {
		if p.task.cfg.OnConflict == AcceptReset {
			p.acceptChangelog(name)
			continue
		}
		if tp := p.task.changelog(name); starts[tp] != ends[tp] {
			return fmt.Errorf("%w: changelog %v holds offsets %d to %d, but the group's offsets do not know store %s; choose accept-reset to restore it, or delete the topic if its content is not wanted", ErrOffsetsLost, tp, starts[tp], ends[tp], name)
		}
	}
	for _, s := range p.stores {
		from, ok := s.from.Next()
		if !ok || from < starts[s.tp] || from > ends[s.tp] {
			if s.still && ok && from > ends[s.tp] { // the store is the truth
				p.seed(s.name, s.tp, fmt.Sprintf("the changelog ends at %d, before the store's offset %d", ends[s.tp], from), starts[s.tp], ends[s.tp])
				continue
			}
			if s.still && (ok || starts[s.tp] != ends[s.tp]) {
				return fmt.Errorf("use-store is not possible: store %s is at offset %v of changelog %v, which holds %d to %d: the broker lost data of it too; choose accept-reset, or reset the application", s.name, s.from, s.tp, starts[s.tp], ends[s.tp])
			}
			if ok && !s.clear {
				s.clear, s.keep = true, true
				s.why = fmt.Sprintf("the stored offset %d does not fit the changelog, which holds %d to %d", from, starts[s.tp], ends[s.tp])
			}
			from = starts[s.tp]
		}
		s.status = RestoreStatus{Store: s.name, Changelog: s.tp, From: from, Next: from, End: ends[s.tp], Started: time.Now()}
	}
	p.stores = slices.DeleteFunc(p.stores, func(s *storePlan) bool { return p.seeding(s.name) })
	return nil
}
