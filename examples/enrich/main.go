// Enrich puts each user's country into their orders, in a plain franz-go consumer: the topic of users is kept as a table
// beside the topic of orders.
//
//	go run ./examples/enrich                     # on a broker of its own, in a folder that is removed
//	go run ./examples/enrich -data /tmp/enrich   # keeps the folder: a second run knows the users already
//	go run ./examples/enrich -brokers host:9092  # topics enrich-users, enrich-orders and enrich-enriched
//
// Both topics have the same number of partitions and the user's id as key, so partition n of both is one task.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/examples/internal/command"
	"github.com/tidemark-streams/tidemark/examples/internal/topics"
	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

const (
	users    = "enrich-users"
	orders   = "enrich-orders"
	enriched = "enrich-enriched"
)

var countries = processor.KeyValue("countries", serde.String, serde.String)

// handle keeps a user's country, or sends an order on with it.
func handle(t *embedded.Task, r *kgo.Record) error {
	table := countries.In(t)
	if r.Topic == users {
		if r.Value == nil {
			_, _, err := table.Delete(string(r.Key))
			return err
		}
		return table.Put(string(r.Key), string(r.Value))
	}
	country, ok, err := table.Get(string(r.Key))
	if err != nil {
		return err
	}
	if !ok {
		country = "unknown"
	}
	return t.Send(enriched, r.Key, fmt.Appendf(nil, "%s from %s", r.Value, country))
}

func main() {
	embeddedbroker.Main() // in the broker's child process this does not return
	f := flag.NewFlagSet("enrich", flag.ExitOnError)
	data := f.String("data", "", "folder for broker and state; default: a temporary one")
	brokers := f.String("brokers", "", "addresses of a Kafka, separated by commas; default: an embedded broker")
	command.Parse(f, "usage: enrich [flags]", os.Args[1:])
	ctx, stop := command.Context()
	defer stop()
	if err := run(ctx, f.Args(), *data, *brokers, os.Stdout); err != nil {
		command.Fail(ctx, "enrich", err)
	}
}

func run(ctx context.Context, stray []string, dir, brokers string, out io.Writer) (err error) {
	if len(stray) > 0 {
		return fmt.Errorf("stray arguments: %q", stray)
	}
	dir, seeds, leave, err := topics.Place(ctx, dir, brokers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	left, err := begin(ctx, seeds)
	if err != nil {
		return err
	}
	host, err := franz.Open(ctx, []kgo.Opt{kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("enrich"), kgo.ConsumeTopics(users, orders), kgo.Balancers(kgo.RangeBalancer()), shortly},
		embedded.Config{App: "enrich", StateDir: filepath.Join(dir, "state"), Topics: []string{users, orders}, Stores: []processor.StoreDef{countries},
			Guarantee: embedded.ExactlyOnce, Outputs: []string{enriched}})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, host.Close(closing))
	}()
	for ordered := false; left > 0 && ctx.Err() == nil && host.Err() == nil; {
		wait, cancel := context.WithTimeout(ctx, time.Second)
		fetches := host.Client().PollFetches(wait)
		cancel()
		for _, r := range fetches.Records() {
			if err := host.Process(r, func(t *embedded.Task) error { return handle(t, r) }); err != nil {
				return err
			}
			if left--; left == 0 && !ordered { // the users are known
				left, ordered = 4, true
				if err := produce(ctx, seeds, orders, map[string]string{"ada": "an engine", "emmy": "a ring", "sofia": "a top", "mary": "a comet"}); err != nil {
					return err
				}
			}
		}
	}
	if err := errors.Join(host.Err(), host.Commit(ctx)); err != nil {
		return err
	}
	return show(ctx, seeds, out)
}
