package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Reduce combines the values of each key: the first is the row, and every further one gives the
// row f(row, value). The rest is as in [KGroupedStream.Count]. A nil result deletes the row, and
// the next value is the first again.
func (g *KGroupedStream[K, V]) Reduce(f func(row, value V) V, m Materialized, named ...Named) *KTable[K, V] {
	const prefix = "KSTREAM-REDUCE-"
	return hangAggregate(g, prefix, f == nil, g.value, m, named, fold[K, V, V]{
		step: func(_ K, row V, has bool, v V) V {
			if !has {
				return v
			}
			return f(row, v)
		},
	})
}

// Aggregate makes a row of the values of each key: init gives the row before the first value, and
// every value gives the row f(key, value, row). The rest is as in [KGroupedStream.Count]. A nil
// result deletes the row, and the next value begins with init again.
func Aggregate[K, V, A any](g *KGroupedStream[K, V], init func() A, f func(key K, value V, row A) A, value serde.Serde[A], m Materialized, named ...Named) *KTable[K, A] {
	const prefix = "KSTREAM-AGGREGATE-"
	return hangAggregate(g, prefix, init == nil || f == nil, value, m, named, fold[K, V, A]{
		init: init,
		step: func(k K, row A, _ bool, v V) A { return f(k, v, row) },
	})
}

// fold is what an aggregation computes.
type fold[K, V, A any] struct {
	// init gives the row that the first value meets; nil: none. It is also what is sent as the
	// old value of a new row, as in Kafka Streams.
	init func() A
	// step gives the row after a value; has is false when there was none and init gives none.
	step func(k K, row A, has bool, v V) A
}

func hangAggregate[K, V, A any](g *KGroupedStream[K, V], prefix string, isNil bool, value serde.Serde[A], m Materialized, named []Named, f fold[K, V, A]) *KTable[K, A] {
	store := g.b.storeName(prefix, m.Name)
	name := g.b.nodeName(prefix, named)
	g.b.checkFunction(name, isNil)
	g.b.own(store, name)
	rows := &aggregated{}
	if g.key == nil || value == nil {
		g.b.problem("%s: the serde of its keys or rows is nil", name)
		return &KTable[K, A]{b: g.b, node: g.node, key: g.key, value: value, rows: rows}
	}
	handle, c := latest(m, store, g.key, value), m.caching(g.b, name)
	parent := g.partitioned(store)
	node := g.b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		old := rows.old
		processor.AddProcessor(t, name, func() *aggregate[K, V, A] {
			return &aggregate[K, V, A]{fold: f, groups: groups[K, A]{handle: handle, key: g.key, caching: c, old: old}}
		}, parents, handle)
		processor.ReadsByKey(t, name, store)
	}}, parent)
	return &KTable[K, A]{b: g.b, node: node, key: g.key, value: value, rows: rows, read: readStore(handle)}
}

// groups are the rows that an aggregation keeps, one of each group.
type groups[K, A any] struct {
	handle  processor.TimestampedKeyValueHandle[K, A]
	key     serde.Serde[K]
	caching caching
	rows    *processor.TimestampedKeyValueStore[K, A]
	updates updates[K, A]
	old     bool // somebody behind the table asked for old values
}

// Init opens the store.
func (g *groups[K, A]) Init(ctx processor.Context[K, change[A]]) error {
	g.rows = g.handle.In(ctx)
	return g.updates.open(ctx, g.rows, g.key, g.caching, g.old)
}

// put writes the row that a record made of one with the time at, if there was one, and sends the change on: no row goes back in time.
func (g *groups[K, A]) put(ctx processor.Context[K, change[A]], out processor.Record[K, change[A]], at time.Time, was bool) error {
	of := out.Timestamp
	if was && at.After(of) {
		out.Timestamp = at
	}
	return g.updates.put(ctx, out, of)
}

type aggregate[K, V, A any] struct {
	fold[K, V, A]
	groups[K, A]
}

// Process brings r into its key's row.
func (p *aggregate[K, V, A]) Process(ctx processor.Context[K, change[A]], r processor.Record[K, V]) error {
	switch {
	case !r.HasKey():
		processor.Drop(ctx, nullKey)
		return nil
	case !r.HasValue():
		processor.Drop(ctx, nullValue)
		return nil
	}
	row, at, ok, err := p.rows.Get(r.Key)
	if err != nil {
		return err
	}
	has := ok
	if !ok && p.init != nil {
		row, has = p.init(), true
	}
	var c change[A]
	if p.old && has {
		var old A
		if ok { // of its own: the aggregator may change its row in place
			if old, _, _, err = p.rows.Get(r.Key); err != nil {
				return err
			}
		} else {
			old = p.init()
		}
		c.setOld(old)
	}
	c.setNew(p.step(r.Key, row, has, r.Value))
	return p.put(ctx, processor.WithValue(r, c), at, ok)
}
