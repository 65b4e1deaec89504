package statestore

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// cacheBudget shares one number of bytes among the caches of the open task stores.
//
// The rule: a task store asks for what it needs to keep what it holds, and a quarter more
// (askFor): so one whose part is full asks for more than its part. Nobody gets more than it
// asks for while somebody else gets less than it asks for and less than an equal part (max-min
// fairness); what is left when all have what they ask for is divided equally, to grow into.
// So a store that does nothing keeps what it holds up to its equal part, and what it does not
// use is for those that are busy.
//
// Parts are only written here; each owner puts its own into effect when it comes by
// ([TaskStore.Trim]). A caller of get or put never waits for the lock.
type cacheBudget struct {
	mu     sync.Mutex
	total  int64
	shares []*cacheShare
	past   CacheStats // of those that have left
}

// cacheShare is one task store's part.
type cacheShare struct {
	most  int64 // a cap of the store's own
	stats func() table.Stats
	part  atomic.Int64

	asked int64 // under the budget's mu

	// The owner's.
	wants    int64
	inEffect int64
}

const (
	wantsAll = math.MaxInt64
	// smallPart is what a store asks for that holds nothing.
	smallPart = 64 << 10
)

// join adds a task store; most bounds its part.
func (b *cacheBudget) join(most int64, stats func() table.Stats) *cacheShare {
	x := &cacheShare{most: most, stats: stats, wants: smallPart, asked: smallPart}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares = append(b.shares, x)
	b.divide()
	return x
}

func (b *cacheBudget) leave(x *cacheShare) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.shares, x); i >= 0 {
		b.shares = slices.Delete(b.shares, i, i+1)
		b.past.add(x.stats())
		b.divide()
	}
}

func (b *cacheBudget) resize(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = max(total, 0)
	b.divide()
}

// ask changes what a share asks for.
func (b *cacheBudget) ask(x *cacheShare, wants int64) {
	x.wants = wants
	b.mu.Lock()
	defer b.mu.Unlock()
	x.asked = wants
	b.divide()
}

// divide gives the parts: those who ask for little first, each at most an equal part of what
// is left; then equal parts of the rest. b.mu is held.
func (b *cacheBudget) divide() {
	type part struct {
		x     *cacheShare
		bytes int64
	}
	parts := make([]part, len(b.shares))
	for i, x := range b.shares {
		parts[i].x = x
	}
	left := b.total
	slices.SortFunc(parts, func(p, q part) int { return cmp.Compare(p.x.claim(), q.x.claim()) })
	for i := range parts {
		p := &parts[i]
		p.bytes = min(p.x.claim(), left/int64(len(parts)-i))
		left -= p.bytes
	}
	room := func(p part) int64 { return p.x.most - p.bytes }
	slices.SortFunc(parts, func(p, q part) int { return cmp.Compare(room(p), room(q)) })
	for i, p := range parts {
		more := min(room(p), left/int64(len(parts)-i))
		left -= more
		p.x.part.Store(p.bytes + more)
	}
}

func (x *cacheShare) claim() int64 { return min(x.asked, x.most) }

// askFor is what a table needs that holds so many bytes: it keeps what is used again only if
// each of its two generations can hold it, and it may grow a little.
func askFor(held int64) int64 { return max(smallPart, 2*held+held/2) }

// Trim puts into effect what others have decided about the task store's cache since the last
// call: its part of the process's budget. It costs next to nothing when there is nothing
// to do. The owner is to call it now and then also while the task has no records; Seal and
// Warm do it by themselves.
func (s *TaskStore) Trim() {
	if part := s.share.part.Load(); part != s.share.inEffect {
		s.share.inEffect = part
		s.table.SetBudget(int(part))
	}
}

// tend asks for more or less, and puts into effect what is granted.
func (s *TaskStore) tend() {
	x := s.share
	wants := askFor(int64(s.table.Bytes()))
	// A little more or less is not worth dividing anew. A table that is full gives up half of
	// what it holds at once.
	if wants > x.wants && wants > x.part.Load() || wants < x.wants/4 {
		s.resources.cache.ask(x, wants)
	}
	s.Trim()
}

// CacheStats tells how a cache does. The numbers are as of the last seal, release or
// eviction.
type CacheStats struct {
	// BudgetBytes is what the cache may take, Bytes what its entries take, HeldBytes the memory
	// it has for them. Writes that are not yet in the database are among them, and may take more
	// than the budget.
	BudgetBytes, Bytes, HeldBytes int64
	// Hits are reads that needed no look into the database, Misses those that did.
	Hits, Misses int64
	// Evictions counts the entries given up for room.
	Evictions int64
	// UnappliedBytes is about what the writes that are not yet in the database took, as of the last
	// seal or apply of each task store.
	UnappliedBytes int64
}

// HitRate is the part of the reads that needed no look into the database, 0 to 1; 0 when
// there were none.
func (c CacheStats) HitRate() float64 {
	if c.Hits+c.Misses == 0 {
		return 0
	}
	return float64(c.Hits) / float64(c.Hits+c.Misses)
}

func (c *CacheStats) add(s table.Stats) {
	c.Hits += s.Hits
	c.Misses += s.Misses
	c.Evictions += s.Evictions
}

// CacheStats tells how the task store's cache does. Any goroutine may call it.
func (s *TaskStore) CacheStats() CacheStats {
	t := s.table.Stats()
	c := CacheStats{BudgetBytes: s.share.part.Load(), Bytes: t.Bytes, HeldBytes: t.Held, UnappliedBytes: t.Unapplied}
	c.add(t)
	return c
}

// stats sums up over the task stores, those that were closed included.
func (b *cacheBudget) stats() (c CacheStats, stores int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.past
	c.BudgetBytes = b.total
	for _, x := range b.shares {
		t := x.stats()
		c.add(t)
		c.Bytes += t.Bytes
		c.HeldBytes += t.Held
		c.UnappliedBytes += t.Unapplied
	}
	return c, len(b.shares)
}
