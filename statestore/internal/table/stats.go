package table

import "sync/atomic"

// Stats tells how the table does, as of the last Seal, Applied, SetBudget, Reset or eviction.
type Stats struct {
	// Hits are the Gets answered by the table, Misses those that went to the database.
	Hits, Misses int64
	// Evictions are the entries dropped for room.
	Evictions int64
	// Budget is what was asked for, Bytes what entries take, Held what the table has from the
	// system for them: all in bytes.
	Budget, Bytes, Held int64
	// Unapplied is about what the writes that are not yet in the database took when an interval was
	// last sealed or applied.
	Unapplied int64
}

// counters are the owner's; published is what others may read.
type counters struct {
	hits, misses, evictions int64
	published               struct{ hits, misses, evictions, budget, bytes, held, unapplied atomic.Int64 }
}

// Stats may be called on any goroutine.
func (t *Table) Stats() Stats {
	p := &t.counters.published
	return Stats{
		Hits: p.hits.Load(), Misses: p.misses.Load(), Evictions: p.evictions.Load(),
		Budget: p.budget.Load(), Bytes: p.bytes.Load(), Held: p.held.Load(),
		Unapplied: p.unapplied.Load(),
	}
}

func (t *Table) publish() {
	p := &t.counters.published
	p.hits.Store(t.counters.hits)
	p.misses.Store(t.counters.misses)
	p.evictions.Store(t.counters.evictions)
	p.budget.Store(int64(2 * t.half))
	p.bytes.Store(int64(t.Bytes()))
	p.held.Store(int64(t.young.held() + t.old.held()))
	p.unapplied.Store(int64(t.sealedBytes + t.dirtyBytes))
}

// held is all memory of the generation, the chunks for later use included.
func (g *generation) held() int {
	n := 8 * len(g.slots)
	for _, c := range g.chunks {
		n += len(c)
	}
	return n
}

// KnownAbsent says that the last Get, which gave Unknown, needed no look into the database
// all the same: its caller knows that the key is absent.
func (t *Table) KnownAbsent() {
	t.counters.misses--
	t.counters.hits++
}
