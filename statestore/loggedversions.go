package statestore

import (
	"bytes"
	"cmp"
	"container/heap"
)

// A versioned store's records come in an order in which whoever restores them refuses none as too old: versions from
// before the history first, in the order of time, as the clock of the restored store follows them. The
// others may come in the order of the rows: of one key that is the order of time too, so that compaction leaves the
// newest.

// recent is the beginning of the history.
func (x *logging) recent() int64 { return x.st.clock.Now() - x.st.layout.Retention }

func (x *logging) oldVersions() error {
	old := byTime{room: versionSortBytes}
	for more := true; more; {
		more = false
		old.begin()
		err := x.eachVersion(func(v Change) bool {
			if v.Timestamp < x.recent() {
				more = !old.offer(v) || more
			}
			return true
		})
		if err != nil {
			return err
		}
		for _, v := range old.take() {
			if !x.give(v) {
				return nil
			}
		}
	}
	return nil
}

func (x *logging) newVersions() error {
	return x.eachVersion(func(v Change) bool { return v.Timestamp < x.recent() || x.give(v) })
}

// eachVersion gives each row as the puts that made it: its version, and that there is no value from
// its end on, which the version that follows it replaces.
func (x *logging) eachVersion(each func(Change) bool) error {
	return x.s.liveRows(x.st, func(_ []byte, e StoredEntry) bool {
		if e.Current && e.Value == nil {
			e.Value = []byte{}
		}
		if e.Start < e.End || e.Current {
			if !each(Change{Key: e.Key, Value: e.Value, Timestamp: e.Start}) {
				return false
			}
		}
		return e.Current || each(Change{Key: e.Key, Timestamp: e.End})
	})
}

// versionSortBytes is how much is sorted in one pass over the rows. A store with more versions from before its
// history takes several.
var versionSortBytes = 32 << 20

// byTime finds the smallest of the changes that it is offered, as many as it has room for, which
// are behind those that it found before.
type byTime struct {
	room, bytes int
	last        Change // of those before
	any         bool
	max         changeHeap
}

func (x *byTime) begin() { x.max, x.bytes = x.max[:0], 0 }

// offer copies c if it is one of the smallest so far; false: it, or another, has to come again in the next pass.
func (x *byTime) offer(c Change) bool {
	if x.any && compareChanges(&c, &x.last) <= 0 {
		return true
	}
	if x.bytes >= x.room && compareChanges(&c, &x.max[0]) >= 0 {
		return false
	}
	c.Key, c.Value = bytes.Clone(c.Key), bytes.Clone(c.Value)
	heap.Push(&x.max, c)
	x.bytes += changeSize(&c)
	all := true
	for x.bytes > x.room && len(x.max) > 1 {
		gone := heap.Pop(&x.max).(Change)
		x.bytes -= changeSize(&gone)
		all = false
	}
	return all
}

// take gives what was found, sorted.
func (x *byTime) take() []Change {
	sorted := make([]Change, len(x.max))
	for i := len(sorted) - 1; i >= 0; i-- {
		sorted[i] = heap.Pop(&x.max).(Change)
	}
	if len(sorted) > 0 {
		x.last, x.any = sorted[len(sorted)-1], true
	}
	return sorted
}

func changeSize(c *Change) int { return len(c.Key) + len(c.Value) + 100 }

// compareChanges is by time, then key; no value comes before a value, which replaces it.
func compareChanges(a, b *Change) int {
	rank := func(c *Change) int {
		if c.Value == nil {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), bytes.Compare(a.Key, b.Key), cmp.Compare(rank(a), rank(b)))
}

// changeHeap has the largest change at its root.
type changeHeap []Change

func (h changeHeap) Len() int           { return len(h) }
func (h changeHeap) Less(i, j int) bool { return compareChanges(&h[i], &h[j]) > 0 }
func (h changeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is heap's.
func (h *changeHeap) Push(x any) { *h = append(*h, x.(Change)) }

// Pop is heap's.
func (h *changeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
