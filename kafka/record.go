package kafka

import "fmt"

// TopicPartition names one partition of one topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String gives Kafka's usual form, topic-partition.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Compare orders by topic, then by partition.
func (tp TopicPartition) Compare(o TopicPartition) int {
	switch {
	case tp.Topic < o.Topic:
		return -1
	case tp.Topic > o.Topic:
		return 1
	}
	return int(tp.Partition) - int(o.Partition)
}

// Header is one header of a record. A nil Value is Kafka's null.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record read from, or to be written to, Kafka. A nil Key or Value is
// Kafka's null; an empty slice that is not nil is an empty key or value.
//
// Whoever hands a record over hands over its slices too: they must not be changed
// afterwards (see [Consumer] and [Producer] for how long they live).
type Record struct {
	Topic     string
	Partition int32
	// Offset is set on records that were read; writers leave it alone.
	Offset int64
	// Timestamp is in milliseconds since 1970. It may be negative in data that others wrote.
	Timestamp int64
	Key       []byte
	Value     []byte
	Headers   []Header
}

// TopicPartition gives the partition the record belongs to.
func (r *Record) TopicPartition() TopicPartition {
	return TopicPartition{r.Topic, r.Partition}
}
