// Command bare does the work of command count by hand, on a client alone: it consumes, counts
// in a Go map, writes each new count to the output topic and, at each commit, the changed
// keys to a compacted changelog; the offsets are committed with them. It has no store: its
// counts are gone when it ends. It is the limit that count is measured against.
//
//	bare -brokers 127.0.0.1:9092 -client franz -in words -out counts -changelog changes -group g -until 2000000
//
// The topics must exist, all with the same number of partitions. Outputs and changelog go to
// the partition their input came from, which spares the hashing of keys.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
)

type options struct {
	report.Flags
	changelog, group string
}

func main() {
	var o options
	o.Register(flag.CommandLine)
	flag.StringVar(&o.changelog, "changelog", "", "compacted topic for the changed counts")
	flag.StringVar(&o.group, "group", "", "consumer group, and prefix of the transactional id")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.changelog == "" || o.group == "" {
		return fmt.Errorf("-changelog and -group are needed")
	}
	loop := franzLoop
	if o.Client == "confluent" {
		loop = confluentLoop
	}
	m := &meter{}
	m.ready.Store(-1)
	rep, err := report.Start(&o.Flags, os.Stderr, m.progress)
	if err != nil {
		return err
	}
	if err := loop(ctx, o, m); err != nil {
		rep.Abandon()
		return err
	}
	f := report.Final{Progress: m.progress(), Commits: m.commits.Load()}
	f.State = "closed"
	if f.Processed > 0 {
		f.Seconds = m.last.Sub(m.first).Seconds()
	}
	return rep.Finish(os.Stdout, f)
}

// meter is what a loop tells about itself. The loop's goroutine writes it.
type meter struct {
	processed, commits, ready atomic.Int64
	first, last               time.Time // the first record, the last commit
}

// begin notes that the first record has come.
func (m *meter) begin() {
	if m.first.IsZero() {
		m.first = time.Now()
		m.ready.Store(report.Since(m.first))
	}
}

func (m *meter) committed() {
	m.commits.Add(1)
	m.last = time.Now()
}

func (m *meter) progress() report.Progress {
	p := report.Progress{State: "starting", Processed: m.processed.Load(), ReadyMS: m.ready.Load(), Tasks: 1}
	if p.ReadyMS >= 0 {
		p.State = "running"
	}
	return p
}
