package kafka

import (
	"context"
	"encoding/hex"
)

// TopicID is the UUID a broker gave a topic when it was created; zero if the broker is
// too old to have one. A topic that was deleted and created again has another one.
type TopicID [16]byte

// String gives the id in hexadecimal.
func (id TopicID) String() string { return hex.EncodeToString(id[:]) }

// Topic describes a topic that exists.
type Topic struct {
	Name       string
	ID         TopicID
	Partitions int32
}

// NewTopic describes a topic to be created.
type NewTopic struct {
	Name       string
	Partitions int32
	// Replication is the replication factor; -1 is the broker's default.
	Replication int16
	Configs     map[string]string
}

// OffsetSpec selects which offset of a partition [Admin.ListOffsets] gives: one of the
// constants, or a time in milliseconds (0 and above): the first record at or after it,
// and the end of the log when there is none.
type OffsetSpec int64

const (
	// Earliest is the first offset that still exists.
	Earliest OffsetSpec = -2
	// HighWatermark is the end of the log as seen by read_uncommitted.
	HighWatermark OffsetSpec = -1
	// LastStable is the end of the log as seen by read_committed.
	LastStable OffsetSpec = -3
)

// CommittedOffset is a group's offset for a partition, with its metadata.
type CommittedOffset struct {
	TopicPartition
	Offset   int64
	Metadata string
}

// Group is what [Admin.DescribeGroup] tells.
type Group struct {
	State   string // as Kafka writes it: Empty, Stable, PreparingRebalance, Dead...
	Members []GroupMember
}

// GroupMember is one member of a group.
type GroupMember struct {
	ID, InstanceID, ClientID, Host string
}

// Admin asks brokers about topics and groups, and changes them. It is safe for concurrent
// use. Every method reports an unreachable broker (ClassUnreachable, with the addresses) at
// the latest when its context ends.
type Admin interface {
	// Topics describes those of names that exist; one that does not is not in the map.
	Topics(ctx context.Context, names ...string) (map[string]Topic, error)
	// TopicConfigs gives the effective configuration of a topic.
	TopicConfigs(ctx context.Context, name string) (map[string]string, error)
	// CreateTopics creates topics and waits until the brokers' metadata shows them with all
	// partitions. A topic that exists already is ClassTopicExists.
	CreateTopics(ctx context.Context, topics ...NewTopic) error
	// DeleteTopics deletes topics; one that does not exist is no error.
	DeleteTopics(ctx context.Context, names ...string) error
	// ListOffsets gives one offset for each partition. A partition that does not exist is
	// an error that names it.
	ListOffsets(ctx context.Context, spec OffsetSpec, partitions ...TopicPartition) (map[TopicPartition]int64, error)
	// CommittedOffsets reads a group's offsets with *require stable*: it waits (until the
	// context ends) for transactions that hold offsets of these partitions. A partition without offset
	// is not in the map; an error of one partition fails the call.
	CommittedOffsets(ctx context.Context, group string, partitions ...TopicPartition) (map[TopicPartition]CommittedOffset, error)
	// DescribeGroup tells a group's state and members.
	DescribeGroup(ctx context.Context, group string) (Group, error)
	// DeleteRecords deletes what is before the given offsets.
	DeleteRecords(ctx context.Context, before map[TopicPartition]int64) error
	Closer
}

// BrokerConfigs is what an [Admin] can do beside: both clients' can.
type BrokerConfigs interface {
	// BrokerConfigs gives the effective configuration of one broker, whichever.
	BrokerConfigs(ctx context.Context) (map[string]string, error)
}
