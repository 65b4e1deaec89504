// Command pause measures how long commits keep a worker from processing: the longest time between
// two records of a worker during each commit, of the workload of command count.
//
//	pause -brokers 127.0.0.1:9092 -in 10k=in-10k -in 1m=in-1m
//
// It looks at the records from within the topology, and at transactions and polls through the
// Kafka client (see package watch); time in Poll does not count. An input that is read to its end
// before there are enough commits is read again, by another application.
//
// The line "no commits" is what the machine does to the same measurement by itself: the longest time
// between two records in windows as long as the commit interval, while nothing is committed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/scratch"
	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

const (
	atLeastOnce = "at-least-once"
	exactlyOnce = "exactly-once"
	noCommits   = "no commits"
)

type options struct {
	brokers, client, guarantees, stateDir string
	inputs                                inputs
	interval                              time.Duration
	commits                               int
}

// inputs are the names and topics of -in.
type inputs [][2]string

func (i *inputs) String() string { return fmt.Sprint(*i) }

// Set takes one NAME=TOPIC.
func (i *inputs) Set(s string) error {
	name, topic, ok := strings.Cut(s, "=")
	if !ok || name == "" || topic == "" {
		return errors.New("write NAME=TOPIC")
	}
	*i = append(*i, [2]string{name, topic})
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.brokers, "brokers", "", "host:port of the brokers, split by commas")
	flag.StringVar(&o.client, "client", "franz", "franz or confluent")
	flag.Var(&o.inputs, "in", "NAME=TOPIC: an input, loaded before; may be repeated")
	flag.StringVar(&o.guarantees, "guarantees", "at-least-once,exactly-once", "which, split by commas")
	flag.StringVar(&o.stateDir, "state-dir", os.TempDir(), "folder for the state")
	flag.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between two commits")
	flag.IntVar(&o.commits, "commits", 120, "commits to look at, for each line of the table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pause:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.brokers == "" || len(o.inputs) == 0 || o.commits < 1 {
		return errors.New("-brokers and at least one -in are needed, and -commits must be at least 1")
	}
	if o.client != "franz" && o.client != "confluent" {
		return fmt.Errorf("-client %q: franz or confluent", o.client)
	}
	for g := range strings.SplitSeq(o.guarantees, ",") {
		if g != atLeastOnce && g != exactlyOnce {
			return fmt.Errorf("guarantee %q: at-least-once or exactly-once", g)
		}
	}
	topics, err := scratch.Dial(o.brokers)
	if err != nil {
		return err
	}
	defer topics.Close()
	fmt.Fprintln(out, "| keys | guarantee | client | commits | records in each | p50 | p99 | longest |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
	for _, in := range o.inputs {
		for g := range strings.SplitSeq(o.guarantees+","+noCommits, ",") {
			l, err := measure(ctx, o, topics, in[1], g)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", in[1], g, err)
			}
			slices.Sort(l.gaps)
			ms := func(q float64) float64 { return float64(watch.Quantile(l.gaps, q).Microseconds()) / 1000 }
			fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %.2f ms | **%.2f ms** | %.2f ms |\n", in[0], g, o.client, len(l.gaps), l.records/int64(max(len(l.gaps), 1)), ms(0.5), ms(0.99), ms(1))
		}
	}
	return nil
}

// line is what one line of the table is made of.
type line struct {
	gaps    []time.Duration
	records int64
}

// maxFruitless is how often in a row a topic may be read without a commit to look at: on a machine
// that is busy with other work a short one may be over before the first has ended.
const maxFruitless = 10

// measure reads a topic as often as it takes to see enough commits.
func measure(ctx context.Context, o options, topics *scratch.Topics, in, guarantee string) (l line, err error) {
	for n, fruitless := 0, 0; len(l.gaps) < o.commits; n++ {
		id := fmt.Sprintf("pause-%d-%d-%d", os.Getpid(), time.Now().UnixNano(), n)
		seen := len(l.gaps)
		if err := errors.Join(one(ctx, o, topics, in, guarantee, id, &l), topics.DeleteAll(id)); err != nil {
			return l, err
		}
		if len(l.gaps) > seen {
			fruitless = 0
		} else if fruitless++; fruitless == maxFruitless {
			return l, errors.New("it was read to its end within two commits or windows: load more records")
		}
	}
	return l, nil
}

// one runs one application until it has read the topic, or until there are enough commits.
func one(ctx context.Context, o options, topics *scratch.Topics, in, guarantee, id string, l *line) (err error) {
	if err := topics.Like(ctx, in, id+"-out"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.stateDir, "pause-")
	if err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	client := &watch.Client{Client: map[string]kafka.Client{"franz": franz.Client{}, "confluent": confluent.Client{}}[o.client]}
	gaps := watch.NewGaps(client)
	if guarantee == noCommits {
		gaps.ByTime(o.interval)
		o.interval, o.commits = time.Hour, math.MaxInt32 // reads to the end
	}
	topology, err := topology(in, id+"-out", gaps)
	if err != nil {
		return err
	}
	cfg := streams.Config{AppID: id, Brokers: strings.Split(o.brokers, ","), StateDir: dir, Workers: 1, CommitInterval: o.interval, Client: client,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if guarantee == exactlyOnce {
		cfg.Guarantee = streams.ExactlyOnce
	}
	app, err := streams.New(topology, cfg)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() { result <- app.Run(ctx) }()
	if err := untilIdle(app, result, int64(o.commits-len(l.gaps))); err != nil {
		return err
	}
	cctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(app.Close(cctx), <-result); err != nil {
		return err
	}
	l.gaps = append(l.gaps, gaps.All()...)
	l.records += app.Status().Workers[0].Processed
	return nil
}

// idleTicks is for how many ticks nothing must have been processed for the topic to be read.
const (
	tick      = 20 * time.Millisecond
	idleTicks = 50
)

// untilIdle waits for so many commits, or until nothing is processed any more. An application that
// ends by itself has failed.
func untilIdle(app *streams.App, result chan error, commits int64) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for idle, before := 0, int64(0); idle < idleTicks; {
		select {
		case err := <-result:
			return errors.Join(errors.New("the application ended"), err)
		case <-ticker.C:
		}
		var processed, done int64
		for _, w := range app.Status().Workers {
			processed, done = processed+w.Processed, done+w.Commits
		}
		if done > commits+1 {
			return nil
		}
		if idle++; processed != before || processed == 0 {
			idle, before = 0, processed
		}
	}
	return nil
}
