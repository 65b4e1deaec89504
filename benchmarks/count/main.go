// Command count is the standard workload: it counts the records of each key in a changelogged
// store named "counts" and writes each new count, as a decimal number, to the output topic.
//
//	count -brokers 127.0.0.1:9092 -client franz -in words -out counts -app-id a -state-dir d -guarantee exactly-once -until 2000000
//
// Once a second it prints a line of JSON with its progress on standard error, and at the end
// one with its result on standard output. SIGTERM closes it cleanly: what is processed is
// committed first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

type options struct {
	report.Flags
	appID, stateDir string
	workers         int
}

func main() {
	var o options
	o.Register(flag.CommandLine)
	flag.StringVar(&o.appID, "app-id", "", "application id: the group, and the prefix of internal topics")
	flag.StringVar(&o.stateDir, "state-dir", "", "folder for the state")
	flag.IntVar(&o.workers, "workers", 1, "goroutines that run tasks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func (o *options) config() streams.Config {
	c := streams.Config{AppID: o.appID, Brokers: o.BrokerList(), StateDir: o.stateDir, Workers: o.workers, CommitInterval: o.CommitInterval,
		Client: map[string]kafka.Client{"franz": franz.Client{}, "confluent": confluent.Client{}}[o.Client],
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if o.ExactlyOnce() {
		c.Guarantee = streams.ExactlyOnce
	}
	return c
}

func run(ctx context.Context, o options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	topology, err := topology(o.In, o.Out)
	if err != nil {
		return err
	}
	cfg := o.config()
	w := &watch{}
	w.ready.Store(-1)
	cfg.StateListener = w.state
	app, err := streams.New(topology, cfg)
	if err != nil {
		return err
	}
	w.app = app
	rep, err := report.Start(&o.Flags, os.Stderr, w.progress)
	if err != nil {
		return err
	}
	end, err := w.run(ctx, o.Until)
	if err != nil {
		rep.Abandon()
		return err
	}
	f := report.Final{Progress: w.progress()}
	for _, worker := range app.Status().Workers {
		f.Commits += worker.Commits
	}
	if f.ReadyMS >= 0 {
		f.Seconds = float64(report.Since(end)-f.ReadyMS) / 1000
	}
	return rep.Finish(os.Stdout, f)
}

// watch follows an application.
type watch struct {
	app   *streams.App
	ready atomic.Int64 // milliseconds from the start of the program to the first time it ran
}

func (w *watch) state(_, now streams.State) {
	if now == streams.Running {
		w.ready.CompareAndSwap(-1, report.Since(time.Now()))
	}
}

// run runs the application until the signal, or until so many records are processed and
// committed; end is when they were.
func (w *watch) run(ctx context.Context, until int64) (end time.Time, err error) {
	result := make(chan error, 1)
	go func() { result <- w.app.Run(ctx) }()
	for {
		changed := w.app.Changed()
		if until > 0 && w.committed() >= until {
			end = time.Now()
			break
		}
		select {
		case err := <-result: // by itself, or by the signal
			return time.Now(), err
		case <-changed:
		}
	}
	cctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return end, errors.Join(w.app.Close(cctx), <-result)
}

// committed is how many records are processed and committed. Where transaction markers lie
// between the records of the input it is too large, but never before they are processed.
func (w *watch) committed() int64 {
	var processed, committed int64
	for _, worker := range w.app.Status().Workers {
		processed += worker.Processed
		for _, t := range worker.Tasks {
			for tp, next := range t.Committed {
				committed += next - t.Found.Positions[tp]
			}
		}
	}
	return min(processed, committed)
}

func (w *watch) progress() report.Progress {
	s := w.app.Status()
	p := report.Progress{State: s.State.String(), ReadyMS: w.ready.Load()}
	for _, worker := range s.Workers {
		p.Processed += worker.Processed
		p.Tasks += len(worker.Tasks)
		for _, t := range worker.Tasks {
			for _, r := range t.Restore {
				p.Restored += r.Records
				p.RestoreMS = max(p.RestoreMS, r.Took.Milliseconds())
			}
		}
	}
	return p
}
