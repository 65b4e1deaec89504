package processor

import (
	"fmt"
	"reflect"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
)

// Record is a record on its way through a topology.
//
// Kafka knows null keys and null values, and they decide joins, tables and deletes. For
// types that have nil (pointers, slices, maps, interfaces) null is nil. For all other types
// null is the zero value together with NullKey or NullValue; assigning any other value makes
// the field a value again. To set an explicit zero value on a record that was null, use
// [WithKey] or [WithValue].
type Record[K, V any] struct {
	Key   K
	Value V
	// Timestamp has millisecond precision in Kafka.
	Timestamp time.Time
	// Headers belong to the record; copy the slice before changing it.
	Headers []kafka.Header
	// NullKey and NullValue mark a null of a type that has no nil.
	NullKey, NullValue bool
}

// HasKey tells whether the key is not null.
func (r Record[K, V]) HasKey() bool { return !isNull(&r.Key, r.NullKey) }

// HasValue tells whether the value is not null.
func (r Record[K, V]) HasValue() bool { return !isNull(&r.Value, r.NullValue) }

func isNull[T any](v *T, mark bool) bool {
	return serde.IsNil(v) || mark && !serde.HasNil[T]() && reflect.ValueOf(v).Elem().IsZero()
}

// WithKey gives r another key, not null unless key is nil.
func WithKey[K2, K, V any](r Record[K, V], key K2) Record[K2, V] {
	return Record[K2, V]{Key: key, Value: r.Value, Timestamp: r.Timestamp, Headers: r.Headers, NullValue: r.NullValue}
}

// WithValue gives r another value, not null unless value is nil.
func WithValue[V2, K, V any](r Record[K, V], value V2) Record[K, V2] {
	return Record[K, V2]{Key: r.Key, Value: value, Timestamp: r.Timestamp, Headers: r.Headers, NullKey: r.NullKey}
}

// WithNullValue gives r a null value of type V2: a tombstone for r's key.
func WithNullValue[V2, K, V any](r Record[K, V]) Record[K, V2] {
	return Record[K, V2]{Key: r.Key, Timestamp: r.Timestamp, Headers: r.Headers, NullKey: r.NullKey, NullValue: true}
}

// RecordMetadata says where the record that is being processed came from.
type RecordMetadata struct {
	Topic     string
	Partition int32
	Offset    int64
}

// TaskID names a task: a sub-topology and a partition of its source topics.
type TaskID struct {
	Subtopology int
	Partition   int32
}

// String gives Kafka Streams' form, 0_1.
func (id TaskID) String() string { return fmt.Sprintf("%d_%d", id.Subtopology, id.Partition) }

// Compare orders by sub-topology, then by partition.
func (id TaskID) Compare(o TaskID) int {
	if id.Subtopology != o.Subtopology {
		return id.Subtopology - o.Subtopology
	}
	return int(id.Partition) - int(o.Partition)
}
