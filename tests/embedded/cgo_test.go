//go:build cgo

package embedded

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/confluent"
	tidemark "github.com/tidemark-streams/tidemark/kafka"
)

func init() {
	staticDoors["confluent"] = confluentStatic
	otherAssignors = append(otherAssignors, door{"confluent-roundrobin", confluentDoor("roundrobin")})
	rangeDoors = append(rangeDoors, door{"confluent-range", confluentDoor("range")})
	handDoors = append(handDoors, handDoor{"confluent", confluentHand})
	doors = append(doors, door{"confluent-range", confluentDoor("range")}, door{"confluent-cooperative", confluentDoor("cooperative-sticky")}, door{consumerProtocol, confluentDoor("consumer")})
}

type confluentLoop struct{ *confluent.Host }

func confluentDoor(assignor string) func([]string, string, []string, embedded.Config) (loop, error) {
	return func(brokers []string, group string, topics []string, cfg embedded.Config) (loop, error) {
		h, err := confluent.Open(context.Background(), conf(assignor, kafka.ConfigMap{"bootstrap.servers": strings.Join(brokers, ","), "group.id": group, "client.id": clientID, "auto.offset.reset": "earliest",
			"max.poll.interval.ms": 5000, "fetch.wait.max.ms": 50, "log_level": 0}), cfg)
		if err != nil {
			return nil, err
		}
		return confluentLoop{h}, h.Consumer().SubscribeTopics(topics, h.Rebalance)
	}
}

// confluentStatic has a rebalance callback of its own, which calls the host's.
func confluentStatic(instance string, taken *atomic.Int32) func([]string, string, []string, embedded.Config) (loop, error) {
	return func(brokers []string, group string, topics []string, cfg embedded.Config) (loop, error) {
		h, err := confluent.Open(context.Background(), conf("range", kafka.ConfigMap{"bootstrap.servers": strings.Join(brokers, ","), "group.id": group, "group.instance.id": instance,
			"auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "log_level": 0}), cfg)
		if err != nil {
			return nil, err
		}
		return confluentLoop{h}, h.Consumer().SubscribeTopics(topics, func(c *kafka.Consumer, e kafka.Event) error {
			if _, ok := e.(kafka.RevokedPartitions); ok {
				taken.Add(1)
			}
			return h.Rebalance(c, e)
		})
	}
}

// conf adds what an assignor needs; "consumer" is that of the broker, KIP-848.
func conf(assignor string, c kafka.ConfigMap) *kafka.ConfigMap {
	if assignor == "consumer" {
		c["group.protocol"] = "consumer"
		return &c
	}
	c["partition.assignment.strategy"], c["heartbeat.interval.ms"], c["session.timeout.ms"] = assignor, 100, 4000
	return &c
}

func (l confluentLoop) poll(f function) (first error) {
	for range 100 { // a hundred messages, or one wait
		m, ok := l.Consumer().Poll(20).(*kafka.Message)
		if !ok {
			return first
		}
		err := l.Process(m, func(t *embedded.Task) error {
			return f(t, record{*m.TopicPartition.Topic, m.TopicPartition.Partition, int64(m.TopicPartition.Offset), string(m.Key), string(m.Value)})
		})
		if first == nil {
			first = err
		}
	}
	return first
}

func confluentHand(brokers []string, group string, cfg embedded.Config) (handLoop, error) {
	h, err := confluent.Open(context.Background(), &kafka.ConfigMap{"bootstrap.servers": strings.Join(brokers, ","), "group.id": group, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "log_level": 0}, cfg)
	if err != nil {
		return nil, err
	}
	return confluentLoop{h}, nil
}

func (l confluentLoop) assign(ctx context.Context, topic string, numbers ...int32) error {
	var list []kafka.TopicPartition
	for _, n := range numbers {
		list = append(list, kafka.TopicPartition{Topic: &topic, Partition: n})
	}
	return l.Assign(ctx, list)
}

func (l confluentLoop) commitByUser(tp tidemark.TopicPartition, offset int64) error {
	done, err := l.Consumer().CommitOffsets([]kafka.TopicPartition{{Topic: &tp.Topic, Partition: tp.Partition, Offset: kafka.Offset(offset)}})
	for _, d := range done {
		err = errors.Join(err, d.Error)
	}
	return err
}
