package task

import (
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Conflict says what a task does when its store and the group's offsets cannot both be right:
// the store is ahead, the offsets are gone, or somebody else committed some. No crash brings that
// about; a reset of offsets does, or a broker that lost data.
type Conflict uint8

const (
	// Stop the task with an error that says what is the matter. The default: only an operator
	// knows which side is wanted.
	Stop Conflict = iota
	// AcceptReset goes on at the group's offsets, where there are none at the start position, and where the
	// log of an input begins behind them at its start.
	// The state stays as it is: records that it already contains are counted again if the
	// offsets went back.
	AcceptReset
	// UseStore goes on where the store stands, whatever the group's offsets are.
	UseStore
)

// String gives the name that the command line knows.
func (c Conflict) String() string {
	switch c {
	case AcceptReset:
		return "accept-reset"
	case UseStore:
		return "use-store"
	}
	return "stop"
}

// ParseConflict reads a name that String gives.
func ParseConflict(s string) (Conflict, error) {
	for _, c := range []Conflict{Stop, AcceptReset, UseStore} {
		if s == c.String() {
			return c, nil
		}
	}
	return Stop, fmt.Errorf("%q is not stop, accept-reset or use-store", s)
}

// resolvable tells whether an operator's choice ends the conflict.
func resolvable(err error) bool {
	return errors.Is(err, ErrStoreAhead) || errors.Is(err, ErrForeignCommit) || errors.Is(err, ErrOffsetsLost) || errors.Is(err, errInputChanged) || errors.Is(err, ErrInputGone) || errors.Is(err, ErrRecordsGone)
}

// errInputChanged is ErrTopicChanged for an input, which can be begun anew.
var errInputChanged = fmt.Errorf("input %w", ErrTopicChanged)

// choose makes the plan that the operator's choice asks for. The take-over then commits the
// positions under a new id, and the store takes that id: both sides agree again.
func (t *Task) choose(choice Conflict, group map[kafka.TopicPartition]kafka.CommittedOffset, conflict error) (*plan, error) {
	if choice == Stop {
		return nil, conflict
	}
	p := &plan{task: t, group: map[kafka.TopicPartition]kafka.CommittedOffset{}, meta: map[kafka.TopicPartition]Metadata{}, choice: choice}
	if _, err := p.readGroup(group); err != nil {
		return nil, err
	}
	for _, m := range p.meta {
		if m.ID.Compare(p.id) > 0 {
			p.id = m.ID // of all, so that the new epoch is larger than each
		}
	}
	if choice == UseStore {
		return p, p.useStore(conflict)
	}
	p.forgetChangedInputs()
	return p, p.restoreAll()
}

// forgetChangedInputs takes out offsets of topics that were created again: they belong to another log.
func (p *plan) forgetChangedInputs() {
	for i, q := range p.task.queues {
		named := coveredMap(p.meta[q.tp].Sources)
		if topic, listed := named[HashName(q.tp.Topic)]; listed && topic != p.task.covered.sources[i].Topic {
			delete(p.group, q.tp)
			delete(p.meta, q.tp)
			p.fresh = append(p.fresh, q.tp)
		}
	}
}

// useStore takes the positions out of the store. They belong to its content only if that is whole, and
// nothing was committed after it.
func (p *plan) useStore(conflict error) error {
	t := p.task
	positions := map[kafka.TopicPartition]int64{}
	for _, x := range t.store.Positions() {
		positions[kafka.TopicPartition{Topic: x.Topic, Partition: x.Partition}] = x.Next
	}
	if t.store.CommitID() == (statestore.CommitID{}) || len(positions) == 0 {
		return fmt.Errorf("use-store is not possible, since the store of this host has no commit: %w", conflict)
	}
	named := map[uint32]uint32{}
	for _, m := range p.meta {
		if m.ID == p.id {
			named = coveredMap(m.Stores)
		}
	}
	began := p.meta
	p.group, p.meta, p.fresh = map[kafka.TopicPartition]kafka.CommittedOffset{}, map[kafka.TopicPartition]Metadata{}, nil
	for _, q := range t.queues {
		next, ok := positions[q.tp]
		if !ok {
			p.fresh = append(p.fresh, q.tp)
			continue
		}
		p.group[q.tp] = kafka.CommittedOffset{TopicPartition: q.tp, Offset: next}
		p.meta[q.tp] = Metadata{PartitionTime: -1, StreamTime: t.store.StreamTime(), Starts: began[q.tp].Starts}
	}
	stores, err := t.stores()
	for _, s := range stores {
		if !s.Complete {
			return fmt.Errorf("use-store is not possible, since store %s of this host is not complete: %w", s.Spec.Name, conflict)
		}
		if topic, ok := named[HashName(s.Spec.Name)]; ok && topic != HashTopicID(s.Spec.ChangelogID) || s.Offset.IsUnknown() {
			p.keep(s, ok && topic != HashTopicID(s.Spec.ChangelogID))
			continue
		}
		p.restoreStore(s)
	}
	for _, s := range p.stores {
		s.still = true
	}
	return err
}

// acceptChangelog restores a store that the group's offsets do not know out of its changelog, if
// that holds anything.
func (p *plan) acceptChangelog(name string) {
	for _, s := range p.stores {
		if s.name == name { // it holds what another life left; it is cleared first
			s.from = statestore.Offset{}
			return
		}
	}
	p.stores = append(p.stores, &storePlan{name: name, tp: p.task.changelog(name)})
}
