// Command hops measures how long a record takes through an application, by the number of repartition topics
// on its way: each is a commit interval, in both guarantees.
//
//	hops -brokers 127.0.0.1:9092 -state-dir d [-client franz] [-commit-interval 100ms] [-records 300]
//
// Single records are written at random moments; the time ends when a read_committed reader has the record that
// comes out. It prints a table.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

type options struct {
	brokers, stateDir, client string
	interval                  time.Duration
	records, hops             int
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.stateDir, "state-dir", "", "folder for the state")
	flag.StringVar(&o.client, "client", "franz", "franz or confluent")
	flag.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between two commits")
	flag.IntVar(&o.records, "records", 300, "records to measure for each line")
	flag.IntVar(&o.hops, "hops", 3, "largest number of repartition topics")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hops:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "| guarantee | client | hops | p50 ms | p90 ms | p99 ms | max ms |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, g := range []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce} {
		for hops := range o.hops + 1 {
			took, err := measure(ctx, o, g, hops)
			if err != nil {
				return fmt.Errorf("%v, %d hops: %w", g, hops, err)
			}
			slices.Sort(took)
			at := func(p float64) string {
				return fmt.Sprintf("%.0f", float64(took[min(int(p*float64(len(took))), len(took)-1)].Microseconds())/1000)
			}
			fmt.Fprintf(out, "| %v | %s | %d | %s | %s | %s | %s |\n", g, o.client, hops, at(0.5), at(0.9), at(0.99), at(1))
		}
	}
	return nil
}

// topology sends records from one topic to another, with a number of repartition topics between.
func topology(in, out string, hops int) (*streams.Topology, error) {
	b := streams.NewBuilder()
	s := streams.Stream(b, in, streams.With(serde.Bytes, serde.Bytes))
	for i := range hops {
		s = s.Repartition(streams.Repartitioned{Name: fmt.Sprint("hop-", i)})
	}
	s.To(out)
	return b.Build()
}

func measure(ctx context.Context, o options, g streams.Guarantee, hops int) ([]time.Duration, error) {
	id := fmt.Sprintf("hops-%x", rand.Uint32())
	in, out := id+"-in", id+"-out"
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(o.brokers, ",")...), kgo.ProducerLinger(0), kgo.ConsumeTopics(out),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopics(ctx, 1, 1, nil, in, out); err != nil {
		return nil, err
	}
	t, err := topology(in, out, hops)
	if err != nil {
		return nil, err
	}
	app, err := streams.New(t, streams.Config{AppID: id, Brokers: strings.Split(o.brokers, ","), StateDir: filepath.Join(o.stateDir, id), Guarantee: g, CommitInterval: o.interval,
		Client: map[string]kafka.Client{"franz": franz.Client{}, "confluent": confluent.Client{}}[o.client],
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }() // ended by Close
	if err := app.CaughtUp(ctx); err != nil {
		return nil, err
	}
	took, err := records(ctx, cl, in, o)
	if cerr := app.Close(ctx); err == nil {
		err = cerr
	}
	if rerr := <-ended; err == nil {
		err = rerr
	}
	return took, err
}

// records writes one record at a time, waits for what comes out, and waits a random time.
func records(ctx context.Context, cl *kgo.Client, in string, o options) (took []time.Duration, err error) {
	const warm = 10 // connections, and the first commit
	for i := range o.records + warm {
		began := time.Now()
		value := binary.BigEndian.AppendUint64(nil, uint64(i))
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: in, Key: []byte("k"), Value: value}).FirstErr(); err != nil {
			return nil, err
		}
		for came := false; !came; {
			fetches := cl.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return nil, err
			}
			fetches.EachRecord(func(r *kgo.Record) { came = came || string(r.Value) == string(value) })
		}
		if i >= warm {
			took = append(took, time.Since(began))
		}
		select {
		case <-time.After(rand.N(2 * o.interval)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}
