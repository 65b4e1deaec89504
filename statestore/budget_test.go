package statestore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
	"pgregory.net/rapid"
)

func noStats() table.Stats { return table.Stats{} }

func TestDivide(t *testing.T) {
	const all = wantsAll
	for _, c := range []struct {
		total             int64
		asked, most, want []int64
	}{
		{100, []int64{all}, nil, []int64{100}},
		{100, []int64{all, all}, nil, []int64{50, 50}},
		{100, []int64{10, all, all}, nil, []int64{10, 45, 45}},
		{100, []int64{10, 20}, nil, []int64{45, 55}}, // the rest in equal parts
		{100, []int64{60, 60}, nil, []int64{50, 50}},
		{100, []int64{all, all}, []int64{20, all}, []int64{20, 80}},
		{100, []int64{10, 10}, []int64{all, 15}, []int64{85, 15}},
		{100, []int64{10, all}, []int64{0, all}, []int64{0, 100}},
		{0, []int64{10, all}, nil, []int64{0, 0}},
		{100, nil, nil, nil},
	} {
		b := &cacheBudget{total: c.total}
		for i, asked := range c.asked {
			most := int64(all)
			if c.most != nil {
				most = c.most[i]
			}
			b.ask(b.join(most, noStats), asked)
		}
		for i, x := range b.shares {
			if got := x.part.Load(); got != c.want[i] {
				t.Errorf("%d for %v (at most %v): part %d is %d; want %d", c.total, c.asked, c.most, i, got, c.want[i])
			}
		}
	}
}

func TestDivideIsFair(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := &cacheBudget{total: rapid.Int64Range(0, 1000).Draw(r, "total")}
		size := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Just(int64(wantsAll)))
		for range rapid.IntRange(1, 8).Draw(r, "stores") {
			b.ask(b.join(size.Draw(r, "most"), noStats), size.Draw(r, "asked"))
		}
		sum, room := int64(0), int64(0)
		for _, x := range b.shares {
			p := x.part.Load()
			sum += p
			if p < 0 || p > x.most {
				r.Fatalf("a part of %d of at most %d", p, x.most)
			}
			room += min(x.most-p, 1<<20)
			for _, y := range b.shares {
				// y gets less than it asks for, so x must not get more than y, unless by a rounding.
				if q := y.part.Load(); q < y.claim() && p > q+int64(len(b.shares)) {
					r.Fatalf("one gets %d (asked for %d), another %d (asked for %d) of %d", p, x.asked, q, y.asked, b.total)
				}
			}
		}
		if sum > b.total || sum < b.total && room > 0 {
			r.Fatalf("%d of %d were given out", sum, b.total)
		}
	})
}

// touch reads and writes n keys, so that the store holds about n times 1 kB if it may.
func touch(t *testing.T, s *TaskStore, n int, id *int64) {
	t.Helper()
	kv := handle(t, s, "counts")
	value := make([]byte, 1000)
	for i := range n {
		_, _, _, err := kv.Get(fmt.Append(nil, i))
		must(t, err)
		must(t, kv.Put(fmt.Append(nil, i), value, 1))
		if i%100 == 99 || i == n-1 {
			*id++
			commit(t, s, Progress{ID: CommitID{1, *id}}, nil)
		}
	}
}

func TestCacheBudgetIsShared(t *testing.T) {
	const budget = 8 << 20
	r, err := NewResources(ResourceOptions{CacheBytes: budget})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	var ids [3]int64
	var stores []*TaskStore
	for i := range ids {
		o := memOptions(vfs.NewMem())
		o.Resources = r
		stores = append(stores, openStore(t, "t", o, countsSpec))
		stores[i].Trim()
	}
	parts := func() (p [3]int64) {
		for i, s := range stores {
			s.Trim()
			p[i] = s.CacheStats().BudgetBytes
		}
		return p
	}
	if p := parts(); p[0]+p[1]+p[2] != budget || p[2]-p[0] > 2 {
		t.Errorf("parts of three idle stores: %v", p)
	}
	touch(t, stores[0], 6000, &ids[0])
	if p := parts(); p[0] < budget*9/10 {
		t.Errorf("parts while only the first is busy: %v; want it to have nearly all of %d", p, budget)
	}
	touch(t, stores[1], 6000, &ids[1])
	p := parts()
	if p[0]+p[1] < budget*9/10 || p[0] < budget*4/10 || p[1] < budget*4/10 {
		t.Errorf("parts with two busy ones: %v; want half each", p)
	}
	for i, s := range stores {
		if got := int64(s.CacheBytes()); got > p[i]+128<<10 {
			t.Errorf("store %d takes %d of its %d", i, got, p[i])
		}
	}
	sum := r.Stats()
	if sum.TaskStores != 3 || sum.Cache.BudgetBytes != budget || sum.Cache.Evictions == 0 || sum.Cache.Misses+sum.Cache.Hits != 12_000 {
		t.Errorf("%+v", sum)
	}
	if c := stores[2].CacheStats(); c.Hits+c.Misses != 0 || c.HitRate() != 0 {
		t.Errorf("the idle store: %+v", c)
	}

	r.SetCacheBytes(1 << 20)
	p = parts()
	if total := p[0] + p[1] + p[2]; total != 1<<20 {
		t.Errorf("parts after SetCacheBytes: %v", p)
	}
	for i, s := range stores {
		if got := int64(s.CacheBytes()); got > p[i]+64<<10 {
			t.Errorf("store %d takes %d of its %d after the budget shrank", i, got, p[i])
		}
	}
	hits := r.Stats().Cache
	must(t, stores[0].Close())
	if got := r.Stats().Cache; got.Hits != hits.Hits || got.Misses != hits.Misses {
		t.Errorf("counts after a close: %+v; before: %+v", got, hits)
	}
	if p := parts(); p[1] < 1<<19 {
		t.Errorf("the closed store's part was not given on: %v", p)
	}
}

func TestOwnBoundOfTheCache(t *testing.T) {
	r, err := NewResources(ResourceOptions{CacheBytes: 8 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	o := memOptions(vfs.NewMem())
	o.Resources, o.CacheBytes = r, 1<<20
	s := openStore(t, "t", o, countsSpec)
	var id int64
	touch(t, s, 3000, &id)
	if c := s.CacheStats(); c.BudgetBytes != 1<<20 || c.Bytes > 1<<20+128<<10 {
		t.Errorf("%+v; want a budget of 1 MiB", c)
	}
	must(t, s.Close())
}

// A warm-up asks for all that there is, and lets go of what it does not need.
func TestWarmAsksForRoom(t *testing.T) {
	r, err := NewResources(ResourceOptions{CacheBytes: 16 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	o := memOptions(vfs.NewMem())
	o.Resources = r
	s := openStore(t, "t", o, countsSpec)
	var id int64
	touch(t, s, 3000, &id)
	must(t, s.Close())
	others := o
	for range 7 {
		others.FS = vfs.NewMem()
		openStore(t, "t", others, countsSpec)
	}
	s = openStore(t, "t", o, countsSpec)
	if p := s.CacheStats().BudgetBytes; p != 2<<20 {
		t.Fatalf("one of 8 idle stores has %d", p)
	}
	for {
		done, err := s.Warm(1000)
		must(t, err)
		if done {
			break
		}
	}
	if c := s.CacheStats(); c.Bytes < 3_000_000 || c.Evictions > 0 || !s.table.Complete(0) {
		t.Errorf("after the warm-up: %+v", c)
	}
	if asked := s.share.asked; asked == wantsAll || asked < 6_000_000 {
		t.Errorf("it asks for %d", asked)
	}
	for _, x := range r.cache.shares {
		if x != s.share && x.part.Load() == 0 {
			t.Error("the others have nothing")
		}
	}
}

// What is written and not yet in the database counts until the interval that it was sealed with is applied.
func TestUnappliedBytes(t *testing.T) {
	r, err := NewResources(ResourceOptions{CacheBytes: 8 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	o := memOptions(vfs.NewMem())
	o.Resources = r
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	write := func(n int) {
		for i := range n {
			must(t, kv.Put(fmt.Append(nil, i), make([]byte, 1000), 1))
		}
	}
	want := func(what string, kib int64) {
		t.Helper()
		of, all := s.CacheStats().UnappliedBytes, r.Stats().Cache.UnappliedBytes
		if of/1000 != kib || all != of {
			t.Errorf("%s: %d bytes of the store, %d of all; want about %d kB", what, of, all, kib)
		}
	}
	want("nothing was written", 0)
	write(10)
	x, err := s.Seal(Progress{ID: CommitID{1, 1}})
	must(t, err)
	want("sealed", 10)
	write(3)
	must(t, s.Commit(x, nil))
	s.Release(x)
	want("applied, with 3 of the next interval", 3)
	x, err = s.Seal(Progress{ID: CommitID{1, 2}})
	must(t, err)
	must(t, s.Commit(x, nil))
	s.Release(x)
	want("all is applied", 0)
	must(t, s.Close())
}
