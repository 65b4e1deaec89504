package streamstest

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// InputTopic is where a test puts records in. See [Input].
type InputTopic[K, V any] struct {
	d     *Driver
	topic *topic
	key   serde.Serde[K]
	value serde.Serde[V]
}

// Input gives a topic that the topology reads, with the types of its records.
func Input[K, V any](d *Driver, topic string, key serde.Serde[K], value serde.Serde[V]) *InputTopic[K, V] {
	d.t.Helper()
	return &InputTopic[K, V]{d, d.find(topic, "read", readByTopology), key, value}
}

func readByTopology(t *topic) bool { return t.reads }

// Pipe puts a record in and processes it. A nil key or value is null.
func (in *InputTopic[K, V]) Pipe(key K, value V, at time.Time, headers ...kafka.Header) {
	in.d.t.Helper()
	in.PipeRecords(processor.Record[K, V]{Key: key, Value: value, Timestamp: at, Headers: headers})
}

// PipeValue puts a record without a key in, whatever the type of keys is.
func (in *InputTopic[K, V]) PipeValue(value V, at time.Time, headers ...kafka.Header) {
	in.d.t.Helper()
	in.PipeRecords(processor.Record[K, V]{NullKey: true, Value: value, Timestamp: at, Headers: headers})
}

// PipeNull puts a record with a null value in, whatever the type of values is: for a table, the
// delete of its key.
func (in *InputTopic[K, V]) PipeNull(key K, at time.Time, headers ...kafka.Header) {
	in.d.t.Helper()
	in.PipeRecords(processor.Record[K, V]{Key: key, NullValue: true, Timestamp: at, Headers: headers})
}

// PipeRecords puts records in, and processes them when all are there. (For those of several
// topics see [Driver.Batch].)
func (in *InputTopic[K, V]) PipeRecords(records ...processor.Record[K, V]) {
	in.d.t.Helper()
	if !in.d.check(in.d.usable()) {
		return
	}
	encoded := make([]kafka.Record, 0, len(records))
	for _, r := range records {
		e, err := in.encode(r)
		if err != nil {
			in.d.check(fmt.Errorf("test driver: record for topic %s: %w", in.topic.name, err))
			return
		}
		encoded = append(encoded, e)
	}
	for _, e := range encoded {
		in.topic.put(e)
	}
	in.d.check(in.d.run())
}

func (in *InputTopic[K, V]) encode(r processor.Record[K, V]) (kafka.Record, error) {
	out := kafka.Record{Timestamp: r.Timestamp.UnixMilli(), Headers: r.Headers}
	var err error
	if r.HasKey() {
		if out.Key, err = in.key.Append([]byte{}, r.Key); err != nil {
			return out, &serde.Error{Serde: in.key.Name(), Topic: in.topic.name, Partition: -1, Offset: -1, Part: serde.PartKey, Err: err}
		}
	}
	if r.HasValue() {
		if out.Value, err = in.value.Append([]byte{}, r.Value); err != nil {
			return out, &serde.Error{Serde: in.value.Name(), Topic: in.topic.name, Partition: -1, Offset: -1, Part: serde.PartValue, Err: err}
		}
	}
	return out, nil
}
