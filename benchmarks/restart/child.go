package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// note is a line that a child prints: an event of its client, "running", or (with no event) where
// it stands.
type note struct {
	At        int64       `json:"at"` // nanoseconds since 1970: parent and child share a clock
	Event     watch.Event `json:"event,omitempty"`
	Processed int64       `json:"processed"`
	// Restored counts the changelog records that were read at the start.
	Restored int64 `json:"restored"`
}

const running watch.Event = "running"

// standing is how often a child says where it stands.
const standing = 20 * time.Millisecond

// child is the application. It ends by being killed, or by a signal.
func child(ctx context.Context, o options, out io.Writer) error {
	n := &notes{out: json.NewEncoder(out)}
	client := &watch.Client{Client: map[string]kafka.Client{"franz": franz.Client{}, "confluent": confluent.Client{}}[o.client], On: n.event}
	topology, err := topology(o.in, o.out)
	if err != nil {
		return err
	}
	app, err := streams.New(topology, streams.Config{AppID: o.appID, Brokers: strings.Split(o.brokers, ","), StateDir: o.stateDir, Workers: 1,
		CommitInterval: o.interval, Client: client, Guarantee: streams.ExactlyOnce,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		StateListener: func(_, now streams.State) {
			if now == streams.Running {
				n.event(running)
			}
		}})
	if err != nil {
		return err
	}
	n.start(app)
	result := make(chan error, 1)
	go func() { result <- app.Run(ctx) }()
	ticker := time.NewTicker(standing)
	defer ticker.Stop()
	for {
		select {
		case err := <-result:
			return err
		case <-ticker.C:
			n.event("")
		}
	}
}

// topology is that of command count.
func topology(in, out string) (*streams.Topology, error) {
	b := streams.NewBuilder()
	records := streams.Stream(b, in, streams.With(serde.String, serde.Bytes))
	counts := records.GroupByKey().Count(streams.Materialized{Name: "counts"})
	streams.MapValues(counts.ToStream(), func(n int64) string { return strconv.FormatInt(n, 10) }, serde.String).To(out)
	return b.Build()
}

// notes prints a child's lines, from several goroutines.
type notes struct {
	mu  sync.Mutex
	out *json.Encoder
	app *streams.App
}

func (n *notes) start(app *streams.App) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.app = app
}

func (n *notes) event(e watch.Event) {
	line := note{At: time.Now().UnixNano(), Event: e}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.app != nil {
		for _, w := range n.app.Status().Workers {
			line.Processed += w.Processed
			for _, t := range w.Tasks {
				for _, r := range t.Restore {
					line.Restored += r.Records
				}
			}
		}
	}
	if err := n.out.Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err) // the parent has gone
	}
}
