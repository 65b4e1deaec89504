package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// result is one start. Times are from the start of the process, in milliseconds.
type result struct {
	Tasks       int     `json:"tasks"`
	Scanned     int     `json:"scanned"`
	ScanMS      float64 `json:"scan_ms"`
	Replayed    int64   `json:"replayed_bytes"` // of write-ahead log
	RestoringMS float64 `json:"restoring_ms"`   // the group has given the tasks
	RunningMS   float64 `json:"running_ms"`
	RunningCPU  float64 `json:"running_cpu_ms"` // CPU time of the process until then
	Restored    int64   `json:"restored_records"`
}

// runApplication is the child: it runs until all tasks do, tells how long that took, and ends.
func runApplication(ctx context.Context, s setup) (err error) {
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
	}
	var counted atomic.Int64
	topology, err := s.topology(&counted)
	if err != nil {
		return err
	}
	restoring, running := make(chan time.Time, 1), make(chan time.Time, 1)
	cfg := streams.Config{
		AppID: s.app, Brokers: []string{s.brokers}, StateDir: s.stateDir, Workers: s.workers,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		StateListener: func(_, to streams.State) {
			switch to {
			case streams.Restoring:
				first(restoring)
			case streams.Running:
				first(running)
			}
		},
	}
	if s.exactlyOnce {
		cfg.Guarantee = streams.ExactlyOnce
	}
	app, err := streams.New(topology, cfg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the application ended before it ran: %w", err)
	case at := <-running:
		if s.profile != "" {
			pprof.StopCPUProfile()
		}
		if s.fill {
			err = fill(ctx, s, &counted)
		} else {
			err = s.report(app, <-restoring, at)
		}
	}
	return errors.Join(err, app.Close(context.WithoutCancel(ctx)), <-ended)
}

func first(c chan<- time.Time) {
	select {
	case c <- time.Now():
	default:
	}
}

func (s setup) report(app *streams.App, restoring, running time.Time) error {
	since := func(t time.Time) float64 { return float64(t.UnixNano()-s.begun) / 1e6 }
	scan := app.Scan()
	r := result{Scanned: scan.Opened, ScanMS: float64(scan.Elapsed.Microseconds()) / 1e3, Replayed: scan.ReplayedBytes,
		RestoringMS: since(restoring), RunningMS: since(running), RunningCPU: cpuMillis()}
	for _, w := range app.Status().Workers {
		for _, t := range w.Tasks {
			r.Tasks++
			for _, x := range t.Restore {
				r.Restored += x.Records
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// topology counts the records of each key.
func (s setup) topology(counted *atomic.Int64) (*streams.Topology, error) {
	b := streams.NewBuilder()
	records := streams.Stream(b, s.input(), streams.With(serde.String, serde.String))
	records.GroupByKey().Count(streams.Materialized{Name: "counts"}).ToStream().Peek(func(string, int64) { counted.Add(1) })
	return b.Build()
}

// fill gives every task something to keep, and waits until it was counted; the close commits it.
func fill(ctx context.Context, s setup, counted *atomic.Int64) (err error) {
	const each = 10
	p, err := franz.Client{}.NewProducer(kafka.Settings{Brokers: []string{s.brokers}}, kafka.ProducerConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	var records []kafka.Record
	for partition := range s.tasks {
		for i := range each {
			records = append(records, kafka.Record{Topic: s.input(), Partition: int32(partition), Timestamp: int64(i),
				Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("value")})
		}
	}
	sent := make(chan error, 1)
	if err := p.Send(ctx, records, func(d kafka.Delivery) { sent <- d.Err }); err != nil {
		return err
	}
	if err := <-sent; err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for counted.Load() < int64(len(records)) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}
