// Ratelimit lets each client make 5 requests a second, and 10 at once: a token bucket for each key, in a plain franz-go
// consumer. A bucket in memory is full again after each deployment; these are committed with the offsets.
//
//	go run ./examples/ratelimit                         # on a broker of its own, in a folder that is removed
//	go run ./examples/ratelimit -data /tmp/ratelimit    # keeps the folder: a second run, ten seconds later, goes on with the buckets
//	go run ./examples/ratelimit -brokers host:9092      # topics ratelimit-requests, -admitted and -throttled
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
	requests         = "ratelimit-requests"
	admitted         = "ratelimit-admitted"
	throttled        = "ratelimit-throttled"
	perSecond, burst = 5.0, 10.0
)

// bucket is how many tokens a client had, and when.
type bucket struct {
	Tokens float64
	At     time.Time
}

var buckets = processor.KeyValue("buckets", serde.String, serde.JSON[bucket]())

// limit takes a token from the client's bucket, which has filled up since, and says where the request goes.
func limit(t *embedded.Task, client string, at time.Time) (topic string, err error) {
	s := buckets.In(t)
	b, known, err := s.Get(client)
	if err != nil {
		return "", err
	}
	if !known {
		b = bucket{burst, at}
	}
	if passed := at.Sub(b.At); passed > 0 { // a request that is late fills nothing
		b = bucket{min(burst, b.Tokens+passed.Seconds()*perSecond), at}
	}
	if b.Tokens < 1 {
		return throttled, s.Put(client, b)
	}
	b.Tokens--
	return admitted, s.Put(client, b)
}

func main() {
	embeddedbroker.Main() // in the broker's child process this does not return
	f := flag.NewFlagSet("ratelimit", flag.ExitOnError)
	data := f.String("data", "", "folder for broker and state; default: a temporary one")
	brokers := f.String("brokers", "", "addresses of a Kafka, separated by commas; default: an embedded broker")
	command.Parse(f, "usage: ratelimit [flags]", os.Args[1:])
	ctx, stop := command.Context()
	defer stop()
	if err := run(ctx, f.Args(), *data, *brokers, os.Stdout); err != nil {
		command.Fail(ctx, "ratelimit", err)
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
	left, err := produce(ctx, seeds)
	if err != nil {
		return err
	}
	host, err := franz.Open(ctx, []kgo.Opt{kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("ratelimit"), kgo.ConsumeTopics(requests), kgo.SessionTimeout(6 * time.Second)},
		embedded.Config{App: "ratelimit", StateDir: filepath.Join(dir, "state"), Stores: []processor.StoreDef{buckets},
			Guarantee: embedded.ExactlyOnce, Outputs: []string{admitted, throttled}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(host)) }()
	polling, done := host.Context(ctx) // ends when the host fails
	defer done()
	for left > 0 && polling.Err() == nil {
		for _, r := range host.Client().PollFetches(polling).Records() {
			err := host.Process(r, func(t *embedded.Task) error {
				left--
				topic, err := limit(t, string(r.Key), r.Timestamp)
				if err != nil {
					return err
				}
				return t.Send(topic, r.Key, r.Value)
			})
			if err != nil {
				return err
			}
		}
	}
	if err := errors.Join(ctx.Err(), host.Err(), host.Commit(ctx)); err != nil {
		return err
	}
	return show(ctx, seeds, out)
}
