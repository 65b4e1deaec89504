package table

// flip drops the old generation when the young one has had its half of the budget. It does
// not while the old one may hold a write that is not in the database, or a cursor is open.
func (t *Table) flip() {
	if t.young.total < t.half || !t.evictable() {
		return
	}
	t.evict()
	t.flips++
	t.young, t.old = t.old, t.young
	t.last = 0
	if t.epoch > 0 {
		t.forgetRanges()
	}
}

// Flips counts how often the young generation has become the old one. What was filled in
// since before the last two may be gone.
func (t *Table) Flips() int { return t.flips }

func (t *Table) evictable() bool { return t.old.writer <= t.applied && len(t.open) == 0 }

// evict empties the old generation.
func (t *Table) evict() {
	if t.old.n > 0 {
		t.drops++
		for store, held := range t.old.holds {
			if held {
				t.SetComplete(uint32(store), false)
			}
		}
		t.counters.evictions += int64(t.old.n - t.old.moved)
	}
	t.old.clear(t.half)
	t.old.born = t.epoch
	t.publish()
}

// SetBudget changes the budget (see [New]). A table over a smaller one gives entries up at
// once, or, those that are not in the database yet, after the next [Table.Applied].
func (t *Table) SetBudget(budget int) {
	half := halfOf(budget)
	t.shrinking = t.shrinking || half < t.half
	t.half = half
	t.fit()
	t.publish()
}

func halfOf(budget int) int { return min(max(budget/2, minHalf), maxHalf) }

// fit gives up what is over a budget that has become smaller.
func (t *Table) fit() {
	if t.old.total > t.half && t.evictable() {
		t.evict()
	}
	if t.young.total > t.half && t.evictable() {
		t.flip()
		if t.evictable() {
			t.evict()
		}
	}
	t.shrinking = t.young.total > t.half || t.old.total > t.half
}
