package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// plan is what a take-over has to do for one task, found by comparing the group's offsets
// with the store.
type plan struct {
	task   *Task
	group  map[kafka.TopicPartition]kafka.CommittedOffset
	meta   map[kafka.TopicPartition]Metadata
	id     statestore.CommitID // of the group's offsets; zero when they have none
	stores []*storePlan        // those to restore
	empty  []string            // stores whose changelog must be empty
	fresh  []kafka.TopicPartition
	// initial: the positions must be committed under a new id before the first poll.
	initial bool
}

type storePlan struct {
	name   string
	tp     kafka.TopicPartition
	from   statestore.Offset
	clear  bool   // empty it first
	why    string // it is cleared
	status RestoreStatus
}

// errors of compare; each ends the task with a text that says what to do.
var (
	// ErrForeignCommit: somebody else committed offsets for this group.
	ErrForeignCommit = errors.New("the group's offsets were not all committed by Tidemark")
	// ErrStoreAhead: the store is newer than the group's offsets, which no crash can bring about.
	ErrStoreAhead = errors.New("the store is ahead of the group's offsets")
	// ErrOffsetsLost: there is state, but the group has no offsets.
	ErrOffsetsLost = errors.New("the group has no offsets, but there is state")
	// ErrTopicChanged: a topic was deleted and created again.
	ErrTopicChanged = errors.New("topic was deleted and created again")
)

// compare decides, from facts alone, what the take-over of a task has to do.
func (t *Task) compare(group map[kafka.TopicPartition]kafka.CommittedOffset) (*plan, error) {
	p := &plan{task: t, group: map[kafka.TopicPartition]kafka.CommittedOffset{}, meta: map[kafka.TopicPartition]Metadata{}}
	foreign, err := p.readGroup(group)
	if err != nil {
		return nil, err
	}
	switch {
	case len(p.group) == 0:
		return p, p.newGroup()
	case foreign == len(p.group):
		// A Kafka Streams application's offsets: its state is restored whole, and the first
		// commit of ours gives them an id.
		if t.store.CommitID() != (statestore.CommitID{}) {
			return nil, fmt.Errorf("%w: the store is at commit %v, the offsets of %v carry none; another program committed for this group, or an operator reset it: delete the task's directory to restore from the changelog, or restore the group's offsets",
				ErrForeignCommit, t.store.CommitID(), t.partitions())
		}
		p.initial = true
		return p, p.restoreAll()
	case foreign > 0:
		return nil, fmt.Errorf("%w: of %v only %d carry a commit id; another program commits for this group: stop it, and restore the offsets or reset the application", ErrForeignCommit, t.partitions(), len(p.group)-foreign)
	}
	return p, p.ours()
}

// readGroup sorts the group's offsets, and says how many have no id of ours.
func (p *plan) readGroup(group map[kafka.TopicPartition]kafka.CommittedOffset) (foreign int, err error) {
	for _, q := range p.task.queues {
		o, ok := group[q.tp]
		if !ok {
			p.fresh = append(p.fresh, q.tp)
			continue
		}
		m, err := DecodeMetadata(o.Metadata)
		if errors.Is(err, ErrForeignMetadata) {
			foreign++
		} else if err != nil {
			return 0, fmt.Errorf("offset of %v: %w", q.tp, err)
		}
		p.group[q.tp], p.meta[q.tp] = o, m
	}
	return foreign, nil
}

// newGroup believes that a group is new only when nothing else says otherwise.
func (p *plan) newGroup() error {
	t := p.task
	if id := t.store.CommitID(); id != (statestore.CommitID{}) || len(t.store.Positions()) > 0 {
		return fmt.Errorf("%w: the store is at commit %v with positions %v, but the group has no offset for %v (expired, or the group was deleted); delete the changelogs and the task's directory to start over, or commit the offsets again",
			ErrOffsetsLost, id, t.store.Positions(), t.partitions())
	}
	p.initial = true
	stores, err := t.stores()
	for _, s := range stores {
		p.newStore(s)
	}
	return err
}

// ours compares offsets that carry ids with the store.
func (p *plan) ours() error {
	t := p.task
	var m Metadata
	for tp, x := range p.meta {
		if m.ID == (statestore.CommitID{}) {
			m = x
		} else if x.ID != m.ID {
			return fmt.Errorf("%w: %v carries commit %v, another partition of the task %v; if its topic was taken out of the topology and is back, delete the group's offset for it (it then begins at the start position); if not, another program commits for this group: stop it",
				ErrForeignCommit, tp, x.ID, m.ID)
		}
	}
	p.id = m.ID
	if err := p.checkSources(m); err != nil {
		return err
	}
	id := t.store.CommitID()
	order := id.Compare(p.id)
	named := coveredMap(m.Stores)
	stores, err := t.stores()
	if err != nil {
		return err
	}
	for _, s := range stores {
		topic, ok := named[HashName(s.Spec.Name)]
		switch {
		case !ok:
			p.newStore(s)
			continue
		case topic != HashTopicID(s.Spec.ChangelogID):
			return fmt.Errorf("changelog %w: %s of store %s is not the topic that the group's offsets name; restore the topic, or reset the application", ErrTopicChanged, t.changelog(s.Spec.Name), s.Spec.Name)
		case s.Complete && order > 0:
			return fmt.Errorf("%w: store %s is at commit %v, the group at %v; the broker lost data or the group's offsets were reset: delete the task's directory to accept the group's offsets", ErrStoreAhead, s.Spec.Name, id, p.id)
		case s.Complete && order == 0:
			continue
		}
		p.restoreStore(s)
	}
	return nil
}

// checkSources looks for input topics that are new, re-created, or committed by someone else.
func (p *plan) checkSources(m Metadata) error {
	named := coveredMap(m.Sources)
	for i, q := range p.task.queues {
		topic, listed := named[HashName(q.tp.Topic)]
		_, committed := p.group[q.tp]
		switch {
		case listed && topic != p.task.covered.sources[i].Topic:
			return fmt.Errorf("input %w: %s is not the topic that the group's offsets belong to; reset the group's offsets for it", ErrTopicChanged, q.tp.Topic)
		case listed && !committed:
			return fmt.Errorf("%w: commit %v covers topic %s, but the group has no offset for %v (somebody deleted it); commit it again, or reset the application", ErrForeignCommit, m.ID, q.tp.Topic, q.tp)
		case !committed:
			p.initial = true // a new input: its start position is committed first
		}
	}
	return nil
}

func coveredMap(list []Covered) map[uint32]uint32 {
	m := map[uint32]uint32{}
	for _, c := range list {
		m[c.Name] = c.Topic
	}
	return m
}

func (p *plan) restoreAll() error {
	stores, err := p.task.stores()
	for _, s := range stores {
		p.restoreStore(s)
	}
	return err
}

// stores gives the state of the stores that the topology has now.
func (t *Task) stores() ([]statestore.StoreState, error) {
	all, err := t.store.Stores()
	return slices.DeleteFunc(all, func(s statestore.StoreState) bool { return !s.Registered }), err
}

// restoreStore plans a restore from where the store stands. What it holds without an offset
// nothing is known of: a key may be among it whose deletion the changelog has forgotten.
func (p *plan) restoreStore(s statestore.StoreState) {
	x := &storePlan{name: s.Spec.Name, tp: p.task.changelog(s.Spec.Name), from: s.Offset}
	if s.Offset.IsUnknown() || s.Offset.IsAbsent() && !s.Empty {
		x.clear, x.why = true, "it holds data, but no offset"
	}
	p.stores = append(p.stores, x)
}

// newStore plans a store that the group's offsets do not know. Its changelog must be empty; what
// the disk holds of it was left by another life of the store, and belongs to a log that is gone.
func (p *plan) newStore(s statestore.StoreState) {
	p.empty = append(p.empty, s.Spec.Name)
	if !s.Empty || !s.Offset.IsAbsent() {
		p.stores = append(p.stores, &storePlan{name: s.Spec.Name, tp: p.task.changelog(s.Spec.Name), clear: true, why: "the group's offsets do not know the store: it begins anew"})
	}
}
