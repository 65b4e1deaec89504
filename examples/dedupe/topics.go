package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/examples/internal/topics"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

const partitions = 4

// produce creates the topics where they are missing, and writes n events, every second one twice.
func produce(ctx context.Context, brokers []string, n int) error {
	if err := topics.Create(ctx, brokers, partitions, events, unique); err != nil {
		return err
	}
	producer, err := franz.Client{}.NewProducer(kafka.Settings{Brokers: brokers}, kafka.ProducerConfig{})
	if err != nil {
		return err
	}
	defer producer.Close(ctx)
	records := make([]kafka.Record, n)
	start := time.Now() // not long ago: a broker deletes what is older than the window's retention from its changelog, by its own clock
	for i := range records {
		id := fmt.Appendf(nil, "event-%06d", i/2)
		at := start.Add(time.Duration(i/2) * time.Millisecond)
		records[i] = kafka.Record{Topic: events, Partition: kafka.Partition(id, partitions), Timestamp: at.UnixMilli(), Key: id, Value: fmt.Appendf(nil, "%d", i)}
	}
	sent := make(chan error, 1)
	if err := producer.Send(ctx, records, func(d kafka.Delivery) { sent <- d.Err }); err != nil || n == 0 {
		return err
	}
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
