//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// bareConfluent reads the changelog to its last record.
func bareConfluent(ctx context.Context, o options) (n int64, seconds float64, err error) {
	begin := time.Now()
	c, err := ck.NewConsumer(&ck.ConfigMap{
		"bootstrap.servers": o.brokers, "group.id": o.app + "-bare", "enable.auto.commit": false, "isolation.level": "read_committed",
		"enable.metrics.push": false, "max.partition.fetch.bytes": 4 << 20, "queued.min.messages": 100_000,
		"fetch.queue.backoff.ms": 5, // the default waits a second whenever the queue was full
	})
	if err != nil {
		return 0, 0, fmt.Errorf("open consumer: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	topic := o.changelog()
	var from []ck.TopicPartition
	for p := range o.partitions {
		from = append(from, ck.TopicPartition{Topic: &topic, Partition: int32(p), Offset: 0})
	}
	if err := c.Assign(from); err != nil {
		return 0, 0, fmt.Errorf("assign: %w", err)
	}
	for n < o.records && ctx.Err() == nil {
		switch e := c.Poll(20).(type) {
		case *ck.Message:
			n++
		case ck.Error:
			if e.IsFatal() {
				return 0, 0, fmt.Errorf("poll: %w", e)
			}
		}
	}
	return n, time.Since(begin).Seconds(), ctx.Err()
}
