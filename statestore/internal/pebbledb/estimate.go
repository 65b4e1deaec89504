package pebbledb

import (
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// EstimateRows implements engine.Engine. Tables below level 0 hold hardly a row twice; those of
// level 0 and the memtables may hold rows that are also there, or deletions of them; what a deleted
// range hides nobody knows.
func (d *DB) EstimateRows(lower, upper []byte) (settled, loose int64, err error) {
	err = d.Read("estimate rows", func(db *pebble.DB) error {
		levels, err := db.SSTables(pebble.WithProperties(), pebble.WithKeyRangeFilter(lower, upper), pebble.WithApproximateSpanBytes())
		for level, tables := range levels {
			for _, t := range tables {
				if t.Properties != nil && t.Properties.NumRangeDeletions > 0 {
					loose = engine.UnknownRows
				}
				puts, deletions := tableRows(t)
				if level == 0 {
					loose += puts + deletions
				} else {
					settled += puts - deletions
				}
			}
		}
		return err
	})
	loose += d.unflushedRows()
	if d.table.deleted.touch(string(lower), string(upper)) {
		loose = engine.UnknownRows
	}
	return max(settled, 0), loose, err
}

// tableRows gives about how many rows in the asked range a table writes, and how many it deletes.
func tableRows(t pebble.SSTableInfo) (puts, deletions int64) {
	if t.Properties == nil || t.Size == 0 {
		return 0, 0
	}
	part := min(float64(t.ApproximateSpanBytes)/float64(t.Size), 1)
	deletions = int64(part * float64(t.Properties.NumPointDeletions()))
	return int64(part*float64(t.Properties.NumEntries)) - deletions, deletions
}

// unflushedRows is at least what the memtables hold.
func (d *DB) unflushedRows() int64 {
	if d.o.ReadOnly {
		return d.replay.Keys
	}
	return d.table.filled.Load() / rowOverhead
}

type keyRange struct{ lower, upper string }

// deletedRanges are those that may be in a memtable. Those of one store that expires all begin at
// the same key, so there are few; a program that deletes many others is followed with one range around all.
type deletedRanges struct {
	mu   sync.Mutex
	all  []keyRange
	left []int // flushes
}

// flushesUntilWritten is behind how many flushes a deletion is in a table: the one that is running may not
// take it, and the next one perhaps only older memtables.
const flushesUntilWritten = 3

const mostRanges = 32

func (r *deletedRanges) add(ranges []keyRange) {
	if len(ranges) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range ranges {
		i := slices.IndexFunc(r.all, func(h keyRange) bool { return h.lower == g.lower })
		if i < 0 && len(r.all) < mostRanges {
			r.all, r.left = append(r.all, g), append(r.left, flushesUntilWritten)
			continue
		}
		if i < 0 {
			i = len(r.all) - 1
			r.all[i].lower = min(r.all[i].lower, g.lower)
		}
		r.all[i].upper, r.left[i] = max(r.all[i].upper, g.upper), flushesUntilWritten
	}
}

func (r *deletedRanges) flushed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.all) - 1; i >= 0; i-- {
		if r.left[i]--; r.left[i] == 0 {
			r.all, r.left = slices.Delete(r.all, i, i+1), slices.Delete(r.left, i, i+1)
		}
	}
}

func (r *deletedRanges) touch(lower, upper string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.all, func(g keyRange) bool { return g.lower < upper && lower < g.upper })
}
