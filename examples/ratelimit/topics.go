package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/examples/internal/topics"
)

// produce creates the topics where they are missing, and writes the requests of ten seconds: ada makes 2 a second, emmy 20. It
// gives how many there are to process, with those that a killed run has left.
func produce(ctx context.Context, brokers []string) (left int, err error) {
	if err := topics.Create(ctx, brokers, 2, requests, admitted, throttled); err != nil {
		return 0, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	start := time.Now().Add(-10 * time.Second) // those of a run ten seconds later are later
	var records []*kgo.Record
	for client, every := range map[string]time.Duration{"ada": 500 * time.Millisecond, "emmy": 50 * time.Millisecond} {
		for at := time.Duration(0); at < 10*time.Second; at += every {
			records = append(records, &kgo.Record{Topic: requests, Key: []byte(client), Timestamp: start.Add(at)})
		}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return 0, err
	}
	return topics.Left(ctx, brokers, "ratelimit", requests)
}

// end closes the host, also when the run was interrupted: a group whose members have just been killed may take longer to let it go.
func end(host *franz.Host) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return host.Close(ctx)
}

// show prints how many requests of each client are in the output topics.
func show(ctx context.Context, brokers []string, out io.Writer) error {
	records, err := topics.Read(ctx, brokers, admitted, throttled)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, r := range records {
		counts[string(r.Key)+" "+r.Topic]++
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%s: %d\n", name, counts[name])
	}
	return nil
}
