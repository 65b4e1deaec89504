package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// ErrInputGone: a store without a changelog is behind the group's offsets, and the inputs do not
// reach back to where it stands.
var ErrInputGone = errors.New("the inputs do not reach back to where a store without a changelog stands")

// unloggedPlan is what a take-over has to do for a task's stores without a changelog.
type unloggedPlan struct {
	// from is where a replay begins, for every committed partition; nil: there is none.
	from map[kafka.TopicPartition]int64
	// stores are those that are behind.
	stores []string
	// rebuild: nothing is known of what they hold. They begin empty, where they once began.
	rebuild bool
	// begins are those that begin now, at the group's offsets.
	begins map[string]bool
	// clear are those to be emptied, with the reason.
	clear map[string]string
}

func isUnlogged(s statestore.StoreState) bool { return s.Spec.Changelog == "" }

// begin has a store begin anew at the group's offsets. What is left over in it is of another life.
func (u *unloggedPlan) begin(s statestore.StoreState, why string) {
	u.begins = put(u.begins, s.Spec.Name, true)
	if holds(s) {
		u.clear = put(u.clear, s.Spec.Name, why)
	}
}

// holds tells whether there is anything to clear.
func holds(s statestore.StoreState) bool { return !s.Empty || !s.Offset.IsAbsent() }

func put[V any](m map[string]V, name string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = v
	return m
}

// asItIs goes on with a store at whatever offsets were chosen. One that belongs to no position begins
// anew; imported rows, which belong to offsets of another program, stay.
func (p *plan) asItIs(s statestore.StoreState) {
	if s.Complete || s.Replaying {
		return
	}
	p.unlogged.begin(s, "it holds data of an unknown position")
	if p.choice == Stop {
		delete(p.unlogged.clear, s.Spec.Name)
	}
}

// compareUnlogged looks at the stores without a changelog that the group's offsets name. In contrast to
// others they are where the positions in the database say: those of the commit, or of a replay that
// was not finished.
func (p *plan) compareUnlogged(stores []statestore.StoreState) error {
	t, u := p.task, &p.unlogged
	order := t.store.CommitID().Compare(p.id)
	var lost, behind []string
	for _, s := range stores {
		switch name := s.Spec.Name; {
		case order > 0 && (s.Complete || s.Replaying):
			return fmt.Errorf("%w: store %s is at commit %v, the group at %v; the broker lost data or the group's offsets were reset: choose accept-reset to go on at the group's offsets, use-store to go on where the store stands, or delete the task's directory to make it anew from the inputs", ErrStoreAhead, name, t.store.CommitID(), p.id)
		case s.Complete && order == 0:
		case s.Complete || s.Replaying:
			behind = append(behind, name)
		default:
			lost = append(lost, name)
			if holds(s) {
				u.clear = put(u.clear, name, "it holds data of an unknown position")
			}
		}
	}
	if len(lost) > 0 {
		return p.planRebuild(stores)
	}
	if len(behind) == 0 {
		return nil
	}
	u.stores, u.from = behind, map[kafka.TopicPartition]int64{}
	at := map[kafka.TopicPartition]int64{}
	for _, x := range t.store.Positions() {
		at[kafka.TopicPartition{Topic: x.Topic, Partition: x.Partition}] = x.Next
	}
	for tp, o := range p.group {
		from, ok := at[tp]
		if !ok { // a source that was new when the last commits were lost
			if from, ok = p.firstStart(tp, behind); !ok {
				return p.planRebuild(stores)
			}
		}
		if from > o.Offset {
			return fmt.Errorf("%w: store %s has processed %v up to %d, the group up to %d", ErrStoreAhead, behind[0], tp, from, o.Offset)
		}
		u.from[tp] = from
	}
	u.settle(p.group)
	return nil
}

// planRebuild has all of the stores begin empty, where they once began: one position for all keeps a replay
// resumable.
func (p *plan) planRebuild(stores []statestore.StoreState) error {
	u := &p.unlogged
	u.rebuild, u.stores, u.from = true, nil, map[kafka.TopicPartition]int64{}
	for _, s := range stores {
		u.stores = append(u.stores, s.Spec.Name)
		if _, told := u.clear[s.Spec.Name]; !told && holds(s) {
			u.clear = put(u.clear, s.Spec.Name, "another store of the task without a changelog was lost: they are made anew together")
		}
	}
	for tp, o := range p.group {
		from, ok := p.firstStart(tp, u.stores)
		if !ok {
			return fmt.Errorf("%w: where store %s began in %v was not recorded (it had a changelog then, or began before an operator's reset); choose accept-reset to begin with it empty at the group's offset, %d",
				ErrInputGone, strings.Join(u.stores, ", "), tp, o.Offset)
		}
		u.from[tp] = min(from, o.Offset)
	}
	u.settle(p.group)
	return nil
}

// firstStart is where the first of the stores began in a partition; ok is false if that is not known
// of one of them.
func (p *plan) firstStart(tp kafka.TopicPartition, stores []string) (first int64, ok bool) {
	m := p.meta[tp]
	for i, name := range stores {
		at, known := m.start(name)
		if !known {
			return 0, false
		}
		if i == 0 || at < first {
			first = at
		}
	}
	return first, true
}

// settle forgets a replay of nothing.
func (u *unloggedPlan) settle(group map[kafka.TopicPartition]kafka.CommittedOffset) {
	for tp, from := range u.from {
		if from < group[tp].Offset {
			return
		}
	}
	u.from = nil
}

// resetUnlogged is the operator's choice when a store cannot be made anew: it begins empty.
func (p *plan) resetUnlogged(stores []statestore.StoreState, why string) {
	p.unlogged = unloggedPlan{}
	for _, s := range stores {
		p.unlogged.begin(s, why)
	}
}

// prepareReplays checks that the inputs reach back to where the replays begin, and empties the stores that
// begin empty.
func (w *Worker) prepareReplays(ctx context.Context, plans []*plan) error {
	var tps []kafka.TopicPartition
	for _, p := range plans {
		for tp := range p.unlogged.from {
			tps = append(tps, tp)
		}
	}
	var starts map[kafka.TopicPartition]int64
	if len(tps) > 0 {
		err := w.retry(ctx, "read the inputs' starts", func(ctx context.Context) (err error) {
			starts, err = w.cfg.Admin.ListOffsets(ctx, kafka.Earliest, tps...)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, p := range plans {
		if err := p.reach(starts); err != nil {
			return &Error{Task: p.task.id, Err: err}
		}
		for name, why := range p.unlogged.clear {
			if err := w.emptyUnlogged(p.task, name, why); err != nil {
				return &Error{Task: p.task.id, Err: err}
			}
		}
	}
	return nil
}

// reach compares the replay with the starts of the inputs' logs.
func (p *plan) reach(starts map[kafka.TopicPartition]int64) error {
	u := &p.unlogged
	var gone []string
	for _, q := range p.task.queues {
		from, ok := u.from[q.tp]
		if to := p.group[q.tp].Offset; ok && from < to && starts[q.tp] > from {
			gone = append(gone, fmt.Sprintf("%d records of %v are gone: the store needs it from %d, and it begins at %d", min(starts[q.tp], to)-from, q.tp, from, starts[q.tp]))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: store %s: %s; put the task's directory back from a copy, or choose accept-reset to begin with the store empty at the group's offsets", ErrInputGone, strings.Join(u.stores, ", "), strings.Join(gone, "; "))
	if p.task.cfg.OnConflict != AcceptReset {
		return err
	}
	behind := u.stores
	stores, serr := p.task.stores()
	if serr != nil {
		return serr
	}
	p.resetUnlogged(slices.DeleteFunc(stores, func(s statestore.StoreState) bool { return !slices.Contains(behind, s.Spec.Name) }), err.Error())
	return nil
}

// emptyUnlogged has a store begin empty. What it held may be nowhere else.
func (w *Worker) emptyUnlogged(t *Task, store, why string) error {
	copied, err := w.copyBefore(t, store, why)
	if err != nil {
		return err
	}
	w.log.Warn("store without a changelog begins empty", "task", t.id.String(), "store", store, "reason", why)
	w.status.task(t.id, func(s *TaskStatus) {
		s.repaired(Repair{Store: store, Reason: why, Action: "emptied; what follows from the inputs is made anew" + copied})
	})
	return t.store.Clear(store)
}
