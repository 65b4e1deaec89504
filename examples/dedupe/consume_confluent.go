//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/confluent"
)

// consume runs the loop until done.
func consume(ctx context.Context, brokers, dir string, dedupe func(*embedded.Task, string, time.Time, []byte) error, done func() bool) (err error) {
	settings := &kafka.ConfigMap{
		"bootstrap.servers": brokers, "group.id": group, "auto.offset.reset": "earliest",
		"session.timeout.ms": 6000, "max.poll.interval.ms": 10_000, // how long a killed member keeps its place: 45 s and 5 min by default
		"enable.metrics.push": false, // the library would print a line about it
	}
	host, err := confluent.Open(ctx, settings, config(dir))
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, host.Close(closing))
	}()
	consumer := host.Consumer()
	if err := consumer.SubscribeTopics([]string{events}, host.Rebalance); err != nil {
		return err
	}
	for ctx.Err() == nil && host.Err() == nil && !done() {
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			err := host.Process(e, func(t *embedded.Task) error {
				return dedupe(t, string(e.Key), e.Timestamp, e.Value)
			})
			if err != nil {
				return err
			}
		case kafka.Error:
			fmt.Fprintln(os.Stderr, "dedupe:", e)
		}
	}
	return errors.Join(ctx.Err(), host.Err())
}
