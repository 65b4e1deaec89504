package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Count counts the rows of each group. A count that falls to 0 stays as 0.
func (g *KGroupedTable[K, V]) Count(m Materialized, named ...Named) *KTable[K, int64] {
	return hangTableAggregate(g, "KTABLE-AGGREGATE-", false, serde.Int64, m, named, regroup[K, V, int64]{
		add:      func(_ K, n int64, _ bool, _ V) int64 { return n + 1 },
		subtract: func(_ K, n int64, _ V) int64 { return n - 1 },
	})
}

// Reduce combines the rows of each group: the first one is the group's row, a further one gives
// add(row, value), one that leaves the group subtract(row, value). A nil result deletes the row.
func (g *KGroupedTable[K, V]) Reduce(add, subtract func(row, value V) V, m Materialized, named ...Named) *KTable[K, V] {
	return hangTableAggregate(g, "KTABLE-REDUCE-", add == nil || subtract == nil, g.value, m, named, regroup[K, V, V]{
		add: func(_ K, row V, has bool, v V) V {
			if !has {
				return v
			}
			return add(row, v)
		},
		subtract: func(_ K, row V, v V) V { return subtract(row, v) },
	})
}

// AggregateTable makes a row of the rows of each group: init gives the row of an empty group, one
// that comes into the group gives add(key, value, row), one that leaves it subtract(key, value,
// row). A nil result deletes the row.
func AggregateTable[K, V, A any](g *KGroupedTable[K, V], init func() A, add, subtract func(key K, value V, row A) A, value serde.Serde[A], m Materialized, named ...Named) *KTable[K, A] {
	return hangTableAggregate(g, "KTABLE-AGGREGATE-", init == nil || add == nil || subtract == nil, value, m, named, regroup[K, V, A]{
		add: func(k K, row A, has bool, v V) A {
			if !has {
				row = init()
			}
			return add(k, v, row)
		},
		subtract: func(k K, row A, v V) A { return subtract(k, v, row) },
	})
}

// regroup is what an aggregation of a table computes.
type regroup[K, V, A any] struct {
	add      func(k K, row A, has bool, v V) A
	subtract func(k K, row A, v V) A
}

func hangTableAggregate[K, V, A any](g *KGroupedTable[K, V], prefix string, isNil bool, value serde.Serde[A], m Materialized, named []Named, f regroup[K, V, A]) *KTable[K, A] {
	store := g.b.storeName(prefix, m.Name)
	sink, source := g.b.generated("KSTREAM-SINK-"), g.b.generated("KSTREAM-SOURCE-")
	name := g.b.nodeName(prefix, named)
	g.b.checkFunction(name, isNil)
	g.b.own(store, name)
	rows := &aggregated{}
	if g.key == nil || g.value == nil || value == nil {
		g.b.problem("%s: a serde is nil", name)
		return &KTable[K, A]{b: g.b, node: g.node, key: g.key, value: value, rows: rows}
	}
	handle, c := latest(m, store, g.key, value), m.caching(g.b, name)
	node := g.b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		old := rows.old
		processor.AddProcessor(t, name, func() *tableAggregate[K, V, A] {
			return &tableAggregate[K, V, A]{regroup: f, groups: groups[K, A]{handle: handle, key: g.key, caching: c, old: old}}
		}, parents, handle)
		processor.ReadsByKey(t, name, store)
	}}, g.partitioned(store, sink, source))
	return &KTable[K, A]{b: g.b, node: node, key: g.key, value: value, rows: rows, read: readStore(handle)}
}

type tableAggregate[K, V, A any] struct {
	regroup[K, V, A]
	groups[K, A]
}

// Process takes the old value out of the group's row and puts the new one in.
func (p *tableAggregate[K, V, A]) Process(ctx processor.Context[K, change[A]], r processor.Record[K, change[V]]) error {
	row, at, ok, err := p.rows.Get(r.Key)
	if err != nil {
		return err
	}
	var c change[A]
	if p.old && ok {
		old, _, _, err := p.rows.Get(r.Key) // of its own: user code may change its row in place
		if err != nil {
			return err
		}
		c.setOld(old)
	}
	has := ok
	if ok && r.Value.hasOld {
		row = p.subtract(r.Key, row, r.Value.old)
		has = !serde.IsNil(&row)
	}
	if r.Value.hasNew {
		row = p.add(r.Key, row, has, r.Value.new)
		has = true
	}
	if has {
		c.setNew(row)
	}
	return p.put(ctx, processor.WithValue(r, c), at, ok)
}
