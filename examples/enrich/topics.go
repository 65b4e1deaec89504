package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/examples/internal/topics"
)

// produce creates the topics where they are missing, and writes to one.
// shortly is how long a member that is killed keeps its place.
var shortly = kgo.SessionTimeout(6 * time.Second)

// begin writes the users, and gives how many records there are to process, with those that a killed run has left.
func begin(ctx context.Context, brokers []string) (left int, err error) {
	if err := produce(ctx, brokers, users, map[string]string{"ada": "England", "emmy": "Germany", "sofia": "Russia"}); err != nil {
		return 0, err
	}
	return topics.Left(ctx, brokers, "enrich", users, orders)
}

func produce(ctx context.Context, brokers []string, topic string, values map[string]string) error {
	if err := topics.Create(ctx, brokers, 2, users, orders, enriched); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	var records []*kgo.Record
	for key, value := range values {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)})
	}
	return cl.ProduceSync(ctx, records...).FirstErr()
}

// show prints what is in the output topic.
func show(ctx context.Context, brokers []string, out io.Writer) error {
	records, err := topics.Read(ctx, brokers, enriched)
	if err != nil {
		return err
	}
	for _, r := range records {
		fmt.Fprintf(out, "%s: %s\n", r.Key, r.Value)
	}
	return nil
}
