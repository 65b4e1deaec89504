package task

import (
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// keptStore is a store that is complete at the group's commit: it is the truth, whatever its changelog holds.
type keptStore struct {
	state   statestore.StoreState
	tp      kafka.TopicPartition
	changed bool // the topic is not the one that the group's offsets name
}

// seedPlan is a store whose content its changelog has lost: it is written there again before the task's first record.
type seedPlan struct {
	name       string
	tp         kafka.TopicPartition
	why        string
	start, end int64 // of what the changelog holds
	next       int64 // behind the content
	written    int64 // records
	done       bool  // all are
}

// seededStore is a store that was written to the end, into a changelog of an id.
type seededStore struct {
	plan *seedPlan
	id   [16]byte
}

// Repair tells what a take-over did to a store and its changelog that did not fit each other.
type Repair struct {
	Store     string
	Changelog kafka.TopicPartition
	// Reason says what did not fit, Action what was done about it.
	Reason, Action string
	// Records were written to the changelog: so many until now, as long as Action says that it is being written.
	Records int64
}

// keep plans nothing for a store that is complete, unless its changelog turns out not to hold it.
func (p *plan) keep(s statestore.StoreState, changed bool) {
	if s.Spec.Changelog != "" {
		p.kept = append(p.kept, keptStore{s, p.task.changelog(s.Spec.Name), changed})
	}
}

// amiss says why the changelog cannot give the store back; "" if it can.
func (k *keptStore) amiss(start, end int64) string {
	switch {
	case k.changed:
		return "the changelog was deleted and created again"
	case k.state.Offset.IsUnknown():
		return "the store's content was not written to the changelog to the end"
	}
	return k.amissAt(k.state.Offset, start, end)
}

// amissAt is amiss of the store at an offset of the changelog.
func (k *keptStore) amissAt(offset statestore.Offset, start, end int64) string {
	next, ok := offset.Next()
	switch {
	case !ok && !k.state.Empty:
		return "the store holds data, but no offset of the changelog"
	case !ok:
		return ""
	case next > end:
		return fmt.Sprintf("the changelog ends at %d, before the store's offset %d", end, next)
	case start >= next && !k.state.Empty && !expires(k.state.Spec.Kind):
		return fmt.Sprintf("the changelog begins at %d, and all up to the store's offset %d was deleted", start, next)
	}
	return ""
}

// expires tells whether the broker deletes records of the kind's changelogs by their age.
func expires(k statestore.Kind) bool {
	return k == statestore.KindWindow || k == statestore.KindTimestampedWindow || k == statestore.KindSession
}

// seedKept plans to write the complete stores again whose changelogs do not hold them.
func (p *plan) seedKept(starts, ends map[kafka.TopicPartition]int64) {
	for i := range p.kept {
		k := &p.kept[i]
		// Written to the end, but the commit of the new epoch has failed: the group's offsets are the same, so is the store.
		if s, ok := p.task.seeded[k.state.Spec.Name]; ok && s.id == k.state.Spec.ChangelogID && k.amissAt(statestore.At(s.plan.next), starts[k.tp], ends[k.tp]) == "" {
			p.seeds = append(p.seeds, s.plan)
			continue
		}
		if why := k.amiss(starts[k.tp], ends[k.tp]); why != "" {
			p.seed(k.state.Spec.Name, k.tp, why, starts[k.tp], ends[k.tp])
		}
	}
}

func (p *plan) seeding(store string) bool {
	return slices.ContainsFunc(p.seeds, func(s *seedPlan) bool { return s.name == store })
}

// unseeded tells whether a store is to be written into its changelog before the task's first record.
func (p *plan) unseeded() bool {
	return slices.ContainsFunc(p.seeds, func(s *seedPlan) bool { return !s.done })
}

func (p *plan) seed(store string, tp kafka.TopicPartition, why string, start, end int64) {
	p.seeds = append(p.seeds, &seedPlan{name: store, tp: tp, why: why, start: start, end: end, next: end})
}

// doubtOffsets has the stores remember, on the disk, that their changelogs are being written: their offsets do not count
// until that is done.
func (t *Task) doubtOffsets(seeds []*seedPlan) error {
	var names []string
	for _, s := range seeds {
		names = append(names, s.name)
	}
	err := t.store.Doubt(names...)
	if err == nil {
		err = t.store.Sync()
	}
	if err != nil {
		return fmt.Errorf("record that changelogs are to be written again: %w", err)
	}
	return nil
}

// adopt records that what the stores hold belongs to the changelogs that the task has now.
func (t *Task) adopt() error {
	stores, err := t.stores()
	if err != nil {
		return err
	}
	for _, s := range stores {
		if s.Spec.Changelog == s.Recorded.Changelog && s.Spec.ChangelogID == s.Recorded.ChangelogID {
			continue
		}
		if err := t.store.Adopt(s.Spec.Name); err != nil {
			return fmt.Errorf("record the changelog of store %s: %w", s.Spec.Name, err)
		}
	}
	return nil
}
