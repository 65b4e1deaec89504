//go:build cgo

// Plain counts clicks for each user since it was started: a stock consumer program. Stateful is the same
// with a count that survives; a test compares the two.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(brokers string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": brokers, "group.id": "clicks", "auto.offset.reset": "earliest"})
	if err != nil {
		return err
	}
	defer consumer.Close()
	if err := consumer.SubscribeTopics([]string{"clicks"}, nil); err != nil {
		return err
	}
	clicks := map[string]int64{}
	for ctx.Err() == nil {
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			user := string(e.Key)
			clicks[user]++
			fmt.Println(user, clicks[user])
		case kafka.Error:
			fmt.Fprintln(os.Stderr, e)
		}
	}
	return nil
}
