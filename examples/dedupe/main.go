// Dedupe drops duplicates: it copies events to another topic, each id once in an hour of event time.
//
//	go run ./examples/dedupe                       # on a broker of its own, in a folder that is removed
//	go run ./examples/dedupe -data /tmp/dedupe     # keeps the folder: a second run finds all ids there
//	go run ./examples/dedupe -brokers host:9092    # topics dedupe-events and dedupe-unique
//
// It is a plain consumer loop (consume_confluent.go; without cgo consume_franz.go) with a store in it. Kill it
// when you like: what it wrote and what it remembers are committed together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/examples/internal/command"
	"github.com/tidemark-streams/tidemark/examples/internal/topics"
	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

const (
	events = "dedupe-events"
	unique = "dedupe-unique"
	group  = "dedupe"
)

// seen remembers ids for an hour of event time; what is older goes by itself.
var seen = processor.Window("seen", serde.String, serde.Int64, time.Second, time.Hour)

// dedupe sends an event on if its id was not seen in the hour before.
func dedupe(t *embedded.Task, id string, at time.Time, value []byte) error {
	s := seen.In(t)
	for _, err := range s.Fetch(id, at.Add(-time.Hour), at) {
		return err // nil: it was seen
	}
	if err := s.Put(id, 1, at); err != nil {
		return err
	}
	return t.Send(unique, []byte(id), value)
}

func config(dir string) embedded.Config {
	return embedded.Config{App: "dedupe", StateDir: filepath.Join(dir, "state"), Stores: []processor.StoreDef{seen},
		Guarantee: embedded.ExactlyOnce, Outputs: []string{unique}, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

func main() {
	embeddedbroker.Main() // in the broker's child process this does not return
	f := flag.NewFlagSet("dedupe", flag.ExitOnError)
	data := f.String("data", "", "folder for broker and state; default: a temporary one")
	brokers := f.String("brokers", "", "addresses of a Kafka, separated by commas; default: an embedded broker")
	n := f.Int("n", 10_000, "events to produce, every second one a duplicate")
	command.Parse(f, "usage: dedupe [flags]", os.Args[1:])
	ctx, stop := command.Context()
	defer stop()
	if err := run(ctx, f.Args(), *data, *brokers, *n, os.Stdout); err != nil {
		command.Fail(ctx, "dedupe", err)
	}
}

func run(ctx context.Context, stray []string, dir, brokers string, n int, out io.Writer) (err error) {
	if len(stray) > 0 {
		return fmt.Errorf("stray arguments: %q", stray)
	}
	if n < 0 {
		return fmt.Errorf("-n is %d: there are no fewer events than none", n)
	}
	dir, seeds, leave, err := topics.Place(ctx, dir, brokers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	start := time.Now()
	if err := produce(ctx, seeds, n); err != nil {
		return err
	}
	left, err := topics.Left(ctx, seeds, group, events) // with what a killed run has left
	if err != nil {
		return err
	}
	got := 0
	err = consume(ctx, strings.Join(seeds, ","), dir, func(t *embedded.Task, id string, at time.Time, value []byte) error {
		got++
		return dedupe(t, id, at, value)
	}, func() bool { return got >= left })
	if err != nil {
		return err
	}
	first, err := topics.Read(ctx, seeds, unique)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d events in %v, %d in %s altogether\n", got, time.Since(start).Round(time.Millisecond), len(first), unique)
	return nil
}
