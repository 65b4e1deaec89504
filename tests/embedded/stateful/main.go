//go:build cgo

// Stateful is the program of plain with a count that survives.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/confluent"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

var clicks = processor.KeyValue("clicks", serde.String, serde.Int64)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(brokers string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	host, err := confluent.Open(ctx, &kafka.ConfigMap{"bootstrap.servers": brokers, "group.id": "clicks", "auto.offset.reset": "earliest"},
		embedded.Config{App: "clicks", StateDir: os.Args[2], Stores: []processor.StoreDef{clicks}})
	if err != nil {
		return err
	}
	defer host.Close(context.Background())
	consumer := host.Consumer()
	if err := consumer.SubscribeTopics([]string{"clicks"}, host.Rebalance); err != nil {
		return err
	}
	for ctx.Err() == nil && host.Err() == nil {
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			user := string(e.Key)
			err = host.Process(e, func(t *embedded.Task) error {
				n, _, err := clicks.In(t).Get(user)
				fmt.Println(user, n+1)
				return errors.Join(err, clicks.In(t).Put(user, n+1))
			})
		case kafka.Error:
			fmt.Fprintln(os.Stderr, e)
		}
	}
	return errors.Join(err, host.Err())
}
