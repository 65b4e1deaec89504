package franz

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// explicit is a partitioner that takes a record's own partition, and remembers those that
// do not exist: franz-go refuses them with an error that cannot be told from others.
type explicit struct {
	missing sync.Map // of kafka.TopicPartition
}

func (e *explicit) ForTopic(topic string) kgo.TopicPartitioner { return explicitTopic{e, topic} }

type explicitTopic struct {
	*explicit
	topic string
}

// RequiresConsistency keeps franz-go from choosing among the partitions that are reachable.
func (explicitTopic) RequiresConsistency(*kgo.Record) bool { return true }

func (t explicitTopic) Partition(r *kgo.Record, n int) int {
	if int(r.Partition) >= n || r.Partition < 0 {
		t.missing.Store(kafka.TopicPartition{Topic: t.topic, Partition: r.Partition}, true)
	}
	return int(r.Partition)
}

func (e *explicit) isMissing(tp kafka.TopicPartition) bool {
	_, ok := e.missing.Load(tp)
	return ok
}
