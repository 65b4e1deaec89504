package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	kept   []keptStore         // those that are complete
	seeds  []*seedPlan         // those of them that their changelogs do not hold
	empty  []string            // stores whose changelog must be empty
	choice Conflict            // the operator's, that made this plan
	fresh  []kafka.TopicPartition
	// unlogged is about the stores without a changelog, which are in none of the lists above.
	unlogged unloggedPlan
	// read is the group's offsets as they were read, whatever was chosen; changes is how often they have
	// changed under the take-over.
	read    map[kafka.TopicPartition]kafka.CommittedOffset
	changes int
}

type storePlan struct {
	name   string
	tp     kafka.TopicPartition
	from   statestore.Offset
	clear  bool   // empty it first
	why    string // it is cleared
	keep   bool   // a copy of it before that: what it holds may be nowhere else
	still  bool   // its changelog must hold nothing beyond the store
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

// compare decides, from facts and the operator's choice, what the take-over of a task has to do.
func (t *Task) compare(group map[kafka.TopicPartition]kafka.CommittedOffset) (*plan, error) {
	p, err := t.compareFacts(group)
	if err != nil && resolvable(err) {
		return t.choose(t.cfg.OnConflict, group, err)
	}
	return p, err
}

func (t *Task) compareFacts(group map[kafka.TopicPartition]kafka.CommittedOffset) (*plan, error) {
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
			return nil, fmt.Errorf("%w: the store is at commit %v, but %s: stop what does that; choose use-store (OnConflict) to go on where the store stands, accept-reset to go on at these offsets, or delete the task's directory to restore from the changelog",
				ErrForeignCommit, t.store.CommitID(), p.others())
		}
		return p, p.restoreAll()
	case foreign > 0:
		return nil, fmt.Errorf("%w: of %v only %d carry a commit id, and %s: stop what does that, and choose use-store (OnConflict), accept-reset, or a reset of the application", ErrForeignCommit, t.partitions(), len(p.group)-foreign, p.others())
	}
	return p, p.ours()
}

// others tells of the offsets without an id of ours.
func (p *plan) others() string {
	var list []string
	for _, q := range p.task.queues {
		if o, ok := p.group[q.tp]; ok && p.meta[q.tp].ID == (statestore.CommitID{}) {
			list = append(list, fmt.Sprintf("offset %d of %v", o.Offset, q.tp))
		}
	}
	return NotOurs(p.task.cfg.group(), list...)
}

// NotOurs says that something else committed these offsets for a group, and what that is as a rule.
func NotOurs(group string, offsets ...string) string {
	return fmt.Sprintf("something other than Tidemark committed %s for group %s (an operator's reset; another program; in the embedded form, CommitRecords or CommitOffsets on the host's client, Commit or CommitMessage on its consumer)", strings.Join(offsets, ", "), group)
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
		return fmt.Errorf("%w: the store is at commit %v with positions %v, but the group has no offset for %v (expired, or the group was deleted); choose use-store to go on where the store stands, accept-reset to begin at the start position with the state as it is, or reset the application to start over",
			ErrOffsetsLost, id, t.store.Positions(), t.partitions())
	}
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
	if len(stores) == 0 && order > 0 { // without the text of a store below
		return fmt.Errorf("%w: this host's directory of the task, which has no stores, is at commit %v, the group at %v; the broker lost data or the group's offsets were reset: choose accept-reset to go on at the group's offsets, or use-store to go on where the directory stands", ErrStoreAhead, id, p.id)
	}
	var unlogged []statestore.StoreState
	for _, s := range stores {
		topic, ok := named[HashName(s.Spec.Name)]
		switch {
		case !ok:
			p.newStore(s)
			continue
		case isUnlogged(s):
			unlogged = append(unlogged, s)
			continue
		case p.wasUnlogged(s.Spec.Name) && !(s.Complete && order == 0):
			return fmt.Errorf("store %s had no changelog at commit %v, and this host does not have it at that commit, from which its changelog could be written: run the application on the host that had the task last, with the store as it was (without a changelog), until it is running and was closed cleanly, and give it a changelog then; or reset the application", s.Spec.Name, p.id)
		case topic != HashTopicID(s.Spec.ChangelogID) && !(s.Complete && order == 0):
			return fmt.Errorf("changelog %w: %s of store %s is not the topic that the group's offsets name, and the store of this host is at commit %v, the group at %v: start the application on the host that had the task last, whose store is complete and is written to the new topic; or restore the topic; or reset the application", ErrTopicChanged, t.changelog(s.Spec.Name), s.Spec.Name, id, p.id)
		case s.Complete && order > 0:
			return fmt.Errorf("%w: store %s is at commit %v, the group at %v; the broker lost data or the group's offsets were reset: choose accept-reset to go on at the group's offsets, use-store to go on where the store stands, or delete the task's directory to restore what the changelog holds", ErrStoreAhead, s.Spec.Name, id, p.id)
		case s.Complete && order == 0:
			p.keep(s, topic != HashTopicID(s.Spec.ChangelogID))
			continue
		}
		p.restoreStore(s)
	}
	return p.compareUnlogged(unlogged)
}

// checkSources looks for input topics that are new, re-created, or committed by someone else.
func (p *plan) checkSources(m Metadata) error {
	named := coveredMap(m.Sources)
	for i, q := range p.task.queues {
		topic, listed := named[HashName(q.tp.Topic)]
		_, committed := p.group[q.tp]
		switch {
		case listed && topic != p.task.covered.sources[i].Topic:
			return fmt.Errorf("%w: %s is not the topic that the group's offsets belong to; accept-reset begins it at the start position", errInputChanged, q.tp.Topic)
		case listed && !committed:
			return fmt.Errorf("%w: commit %v covers topic %s, but the group has no offset for %v (somebody deleted it); commit it again, or reset the application", ErrForeignCommit, m.ID, q.tp.Topic, q.tp)
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
	if isUnlogged(s) {
		p.asItIs(s)
		return
	}
	x := &storePlan{name: s.Spec.Name, tp: p.task.changelog(s.Spec.Name), from: s.Offset}
	if s.Offset.IsUnknown() || s.Offset.IsAbsent() && !s.Empty {
		// In doubt because its changelog was being written: this host went on only when that was done, so it is all there. Not
		// so after an operator's choice, and of another host, which has committed since, nobody knows.
		written := s.Offset.IsUnknown() && s.Complete && p.choice == Stop && p.id.Number == 0
		x.clear, x.keep, x.why = true, !written, "it holds data, but no offset"
	} else if old := s.Recorded.Changelog; old != "" && old != x.tp.Topic && !s.Offset.IsAbsent() {
		x.clear, x.keep, x.why = true, true, "its offset is one of "+old // from a migration, or of another application id
	} else if id := s.Recorded.ChangelogID; id != [16]byte{} && s.Spec.ChangelogID != [16]byte{} && id != s.Spec.ChangelogID && !s.Offset.IsAbsent() {
		x.clear, x.keep, x.why = true, true, "its offset is one of the changelog before that was deleted and created again"
	}
	p.stores = append(p.stores, x)
}

// newStore plans a store that the group's offsets do not know. Its changelog must be empty; what
// the disk holds of it was left by another life of the store, and belongs to a log that is gone.
func (p *plan) newStore(s statestore.StoreState) {
	if isUnlogged(s) {
		p.unlogged.begin(s, "the group's offsets do not know the store: it begins anew")
		return
	}
	p.empty = append(p.empty, s.Spec.Name)
	if !s.Empty || !s.Offset.IsAbsent() {
		p.stores = append(p.stores, &storePlan{name: s.Spec.Name, tp: p.task.changelog(s.Spec.Name), clear: true, keep: true, why: "the group's offsets do not know the store: it begins anew"})
	}
}
