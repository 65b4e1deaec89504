package statestore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// NoStreamTime is the stream time of a task that has not seen a record.
const NoStreamTime int64 = -1

// Position is the offset of the next record to process of one source partition.
type Position struct {
	Topic     string
	Partition int32
	Next      int64
}

// Progress is what a commit says about the task, beside its stores' changelog offsets.
type Progress struct {
	// ID names the commit. It must be greater than the last one's, or zero: then the last
	// one's stays (for users that do without).
	ID CommitID
	// StreamTime is the largest record timestamp seen, in milliseconds. A commit never
	// takes it back; NoStreamTime leaves it as it is.
	StreamTime int64
	// Positions replaces the positions of the partitions that it names; others stay.
	Positions []Position
	// Replaying: stores without a changelog are not complete at ID. They hold what the records
	// before the positions wrote, and ID belongs to positions behind those.
	Replaying bool
}

// progress is the content of the commit record, and a version of it: never changed.
type progress struct {
	seq        uint64 // counts the batches of this run
	id         CommitID
	streamTime int64
	committed  int64      // the wall clock at the last commit, in ms; 0 = none
	positions  []Position // by topic and partition
	stores     map[uint32]storeProgress
}

type storeProgress struct {
	offset   Offset
	complete bool
	// replaying, of a store without a changelog that is not complete: it holds what the records
	// before the positions wrote.
	replaying bool
	clock     kinds.Clock // of a kind whose entries expire
	// before, of a user's versioned store that was found behind, is what its clock is at least when its
	// restore is over. The record has the later of the two: a crash before that must not lose it.
	before kinds.Clock
}

// incomplete is what a restore makes of a store.
func (sp storeProgress) incomplete(at Offset) storeProgress {
	return storeProgress{offset: at, clock: sp.clock, before: sp.before}
}

func (sp storeProgress) recordedClock() kinds.Clock {
	if sp.before.Known {
		sp.clock.Advance(sp.before.Time)
	}
	return sp.clock
}

// completeAt tells what a commit makes of a store: complete, or in the middle of a replay.
func (p Progress) completeAt(st *store, sp storeProgress) storeProgress {
	sp.replaying = p.Replaying && st.spec.Changelog == ""
	sp.complete = !sp.replaying
	if st.spec.Changelog == "" {
		sp.offset = Offset{} // of the changelog that it had once
	}
	return sp
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// merge gives the positions of old with those of changed put in.
func mergePositions(old, changed []Position) []Position {
	merged := slices.Clone(old)
	for _, p := range changed {
		i, found := slices.BinarySearchFunc(merged, p, comparePositions)
		if found {
			merged[i] = p
		} else {
			merged = slices.Insert(merged, i, p)
		}
	}
	return merged
}

func (p Progress) validate() error {
	for _, x := range p.Positions {
		if x.Topic == "" {
			return fmt.Errorf("position without a topic (partition %d, offset %d)", x.Partition, x.Next)
		}
		if x.Partition < 0 || x.Next < 0 {
			return fmt.Errorf("negative partition or offset in the position of %s-%d: %d", x.Topic, x.Partition, x.Next)
		}
	}
	if p.ID.Epoch < 0 || p.ID.Number < 0 {
		return fmt.Errorf("negative commit id %v", p.ID)
	}
	return nil
}
