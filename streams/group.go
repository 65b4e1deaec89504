package streams

import "github.com/tidemark-streams/tidemark/serde"

// KGroupedStream is a stream whose records are to be aggregated by key.
type KGroupedStream[K, V any] struct {
	b       *Builder
	node    *graphNode
	key     serde.Serde[K]
	value   serde.Serde[V]
	rekeyed bool
	// name is that of the repartition topic, if it has one of its own; then all aggregations
	// share the topic.
	name   string
	shared *graphNode
}

// GroupByKey groups the records by their key. If the key may have changed since the records
// were read, they go through a repartition topic, whose name can be given here; the default
// is the name of the aggregation's store.
func (s *KStream[K, V]) GroupByKey(named ...Named) *KGroupedStream[K, V] {
	name := s.b.given("KSTREAM-GROUP-BY-KEY", named)
	return &KGroupedStream[K, V]{b: s.b, node: s.node, key: s.key, value: s.value, rekeyed: s.rekeyed, name: name}
}

// GroupBy groups the records by a new key, through a repartition topic. A name given here is
// that of the node and of the topic; the topic's default is the name of the aggregation's
// store. A record that f cannot be called with, because its value is a null of a type
// without nil, is dropped and counted. One that f gives a nil key is left out.
func GroupBy[K, V, K2 any](in *KStream[K, V], f func(K, V) K2, key serde.Serde[K2], named ...Named) *KGroupedStream[K2, V] {
	out := &KGroupedStream[K2, V]{b: in.b, key: key, value: in.value, rekeyed: true}
	name := in.b.nodeName("KSTREAM-KEY-SELECT-", named)
	if len(named) > 0 {
		out.name = name
	}
	out.node = hangSelectKey(in, name, f)
	return out
}

// partitioned gives the node behind which the records of a key are in one partition.
func (g *KGroupedStream[K, V]) partitioned(store string) *graphNode {
	if !g.rekeyed {
		return g.node
	}
	prefix := g.name
	if prefix == "" {
		prefix = store
	}
	n := newRepartition(g.b, prefix, 0, g.key, g.value) // made even if not used: it moves the counter
	if g.shared == nil || g.name == "" {
		g.shared = n
	}
	return g.b.hang(g.shared, g.node)
}

// Count counts the records of each key. The table's rows carry the largest timestamp among
// the key's records; every record gives an update. Records with a null key or value are
// dropped and counted.
func (g *KGroupedStream[K, V]) Count(m Materialized, named ...Named) *KTable[K, int64] {
	return hangAggregate(g, "KSTREAM-AGGREGATE-", false, serde.Int64, m, named, fold[K, V, int64]{
		init: func() int64 { return 0 },
		step: func(_ K, n int64, _ bool, _ V) int64 { return n + 1 },
	})
}
