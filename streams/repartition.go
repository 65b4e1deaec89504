package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Repartitioned describes a repartition topic. The zero value is one with a generated name
// and as many partitions as its input has.
type Repartitioned struct {
	// Name of the topic, without the application id before it; "-repartition" is put behind it
	// unless it ends so.
	Name string
	// Partitions of the topic.
	Partitions int32
}

// Repartition writes the records to an internal topic and reads them back, so that records
// of one key are in one partition. Records with a null key are left out.
func (s *KStream[K, V]) Repartition(topic Repartitioned) *KStream[K, V] {
	const prefix = "KSTREAM-REPARTITION-"
	name := topic.Name
	if name == "" {
		name = s.b.generated(prefix)
	} else if err := processor.CheckName(name); err != nil {
		s.b.problem("name of a repartition topic: %w", err)
	}
	if topic.Partitions < 0 {
		s.b.problem("repartition topic %s has %d partitions", name, topic.Partitions)
	}
	out := s.then(s.b.hang(newRepartition(s.b, name, topic.Partitions, s.key, s.value), s.node))
	out.rekeyed = false
	return out
}

// newRepartition makes the step of a repartition topic; it is not hung up yet.
func newRepartition[K, V any](b *Builder, prefix string, partitions int32, key serde.Serde[K], value serde.Serde[V]) *graphNode {
	names := b.repartitionNames(prefix)
	n := &graphNode{name: names.source}
	n.write = func(t *processor.Topology, parents []string) {
		t.AddInternalTopic(processor.InternalTopic{Name: names.topic, Partitions: partitions})
		if n.leadsToNullKeys() {
			processor.AddProcessor(t, names.filter, newPass[K, V], parents)
		} else {
			processor.AddProcessor(t, names.filter, newHasKey[K, V], parents)
		}
		processor.AddSink(t, names.sink, names.topic, key, value, names.filter)
		processor.AddSource(t, names.source, key, value, names.topic)
	}
	return n
}

// hasKey leaves out what has no partition. As in Kafka Streams that is not counted as dropped.
type hasKey[K, V any] struct{}

func newHasKey[K, V any]() hasKey[K, V] { return hasKey[K, V]{} }

// Process forwards r if it has a key.
func (hasKey[K, V]) Process(ctx processor.Context[K, V], r processor.Record[K, V]) error {
	if !r.HasKey() {
		return nil
	}
	return ctx.Forward(r)
}
