package streams

import (
	"slices"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// KStream is a stream of records, each a fact of its own. Its methods and the functions over
// it add operators to the builder it comes from.
//
// An operator that leads to other types is a function, the others are methods: in Go a method
// has no type parameters.
type KStream[K, V any] struct {
	b     *Builder
	node  *graphNode
	key   serde.Serde[K]
	value serde.Serde[V]
	// rekeyed: the key may have changed since the records were partitioned by it, so what
	// groups by key writes them to a repartition topic first.
	rekeyed bool
}

// then gives the stream behind a further node of the same types.
func (s *KStream[K, V]) then(node *graphNode) *KStream[K, V] {
	return &KStream[K, V]{b: s.b, node: node, key: s.key, value: s.value, rekeyed: s.rekeyed}
}

// Stream reads a topic.
func Stream[K, V any](b *Builder, topic string, with Serdes[K, V]) *KStream[K, V] {
	return StreamTopics(b, []string{topic}, with)
}

// StreamTopics reads several topics as one stream. Records of one partition number are
// processed by one task, in the order of their timestamps.
//
// Streams of the same topics share one source, with the same serdes.
func StreamTopics[K, V any](b *Builder, topics []string, with Serdes[K, V]) *KStream[K, V] {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	name := b.nodeName("KSTREAM-SOURCE-", with.name)
	n := &graphNode{name: name, topics: topics, serdes: with.names(), write: func(t *processor.Topology, _ []string) {
		processor.AddSource(t, name, with.key, with.value, topics...)
	}}
	return &KStream[K, V]{b: b, node: b.hang(n, b.root), key: with.key, value: with.value}
}

// To writes the records to a topic, which must exist. A null key or value is written as null.
func (s *KStream[K, V]) To(topic string, named ...Named) {
	name := s.b.nodeName("KSTREAM-SINK-", named)
	key, value := s.key, s.value
	s.b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		processor.AddSink(t, name, topic, key, value, parents...)
	}}, s.node)
}

// Merge gives the records of both streams, in the order in which they arrive.
func (s *KStream[K, V]) Merge(other *KStream[K, V], named ...Named) *KStream[K, V] {
	name := s.b.nodeName("KSTREAM-MERGE-", named)
	if other.b != s.b {
		s.b.problem("%s: the streams come from two builders", name)
		return s
	}
	out := s.then(hangProcessor(s.b, name, newPass[K, V], []*graphNode{s.node, other.node}))
	out.rekeyed = s.rekeyed || other.rekeyed
	return out
}

// Nodes that only join, or only name, a stream.
func newPass[K, V any]() processor.Pass[K, V] { return processor.Pass[K, V]{} }
