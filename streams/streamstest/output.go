package streamstest

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// OutputTopic is where a test reads what the topology has written. See [Output].
type OutputTopic[K, V any] struct {
	d     *Driver
	topic *topic
	key   serde.Serde[K]
	value serde.Serde[V]
}

// Output gives a topic that the topology writes, with the types of its records. Every record is
// read once: several of one topic share what is left.
func Output[K, V any](d *Driver, topic string, key serde.Serde[K], value serde.Serde[V]) *OutputTopic[K, V] {
	d.t.Helper()
	return &OutputTopic[K, V]{d, d.find(topic, "write", writtenByTopology), key, value}
}

func writtenByTopology(t *topic) bool { return t.writes }

// Len is how many records wait to be read.
func (o *OutputTopic[K, V]) Len() int { return len(o.topic.out) }

// IsEmpty tells whether no record waits to be read.
func (o *OutputTopic[K, V]) IsEmpty() bool { return o.Len() == 0 }

// Read takes the next record; ok is false if there is none.
func (o *OutputTopic[K, V]) Read() (r processor.Record[K, V], ok bool) {
	o.d.t.Helper()
	if o.IsEmpty() {
		return r, false
	}
	raw := o.topic.out[0]
	o.topic.out = o.topic.out[1:]
	r, err := o.decode(&raw)
	return r, o.d.check(err)
}

// ReadAll takes all records that wait, in the order in which they were written.
func (o *OutputTopic[K, V]) ReadAll() []processor.Record[K, V] {
	o.d.t.Helper()
	var all []processor.Record[K, V]
	for {
		r, ok := o.Read()
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

// Map takes all records that wait and gives the table that they make: the last value of each
// key. A null value deletes; records without a key are no rows.
func Map[K comparable, V any](o *OutputTopic[K, V]) map[K]V {
	o.d.t.Helper()
	rows := map[K]V{}
	for _, r := range o.ReadAll() {
		switch {
		case !r.HasKey():
		case r.HasValue():
			rows[r.Key] = r.Value
		default:
			delete(rows, r.Key)
		}
	}
	return rows
}

func (o *OutputTopic[K, V]) decode(raw *kafka.Record) (r processor.Record[K, V], err error) {
	r.Timestamp, r.Headers = time.UnixMilli(raw.Timestamp), raw.Headers
	if raw.Key == nil {
		r.NullKey = !serde.HasNil[K]()
	} else if r.Key, err = o.key.Decode(raw.Key); err != nil {
		return r, fmt.Errorf("test driver: read topic %s: key with serde %s: %w", o.topic.name, o.key.Name(), err)
	}
	if raw.Value == nil {
		r.NullValue = !serde.HasNil[V]()
	} else if r.Value, err = o.value.Decode(raw.Value); err != nil {
		return r, fmt.Errorf("test driver: read topic %s: value with serde %s: %w", o.topic.name, o.value.Name(), err)
	}
	return r, nil
}
