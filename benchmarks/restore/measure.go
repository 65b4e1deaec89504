package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// measure runs one measurement in this process.
func measure(ctx context.Context, o options, out io.Writer) (err error) {
	if o.profile != "" {
		f, ferr := os.Create(o.profile)
		if ferr != nil {
			return ferr
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() { pprof.StopCPUProfile(); err = errors.Join(err, f.Close()) }()
	}
	ways := map[string]func(context.Context, options) (int64, float64, error){"franz bare": bareFranz, "confluent bare": bareConfluent, "franz restore": restore, "confluent restore": restore}
	way := ways[o.clients+" "+o.child]
	if way == nil {
		return fmt.Errorf("-child %q -clients %q: bare or restore, with franz or confluent", o.child, o.clients)
	}
	n, seconds, err := way(ctx, o)
	if err != nil {
		return err
	}
	gc := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(gc)
	return json.NewEncoder(out).Encode(result{Records: n, Seconds: seconds, CPU: report.CPU().Seconds(), GC: gc[0].Value.Float64(), PeakBytes: report.PeakRSS()})
}

// store is the one of the measured application.
const store = "rows"

func (o options) input() string { return o.app + "-input" }

func (o options) changelog() string { return task.ChangelogTopic(o.app, store) }

// restore starts an application without state and without offsets, which is told to accept what its changelog holds, and
// stops it when it runs.
func restore(ctx context.Context, o options) (n int64, seconds float64, err error) {
	dir := filepath.Join(o.stateDir, "restore")
	if err := os.RemoveAll(dir); err != nil {
		return 0, 0, err
	}
	running := make(chan struct{}, 1)
	cfg := streams.Config{AppID: o.app, Brokers: strings.Split(o.brokers, ","), StateDir: dir, OnConflict: streams.AcceptReset,
		Client: map[string]kafka.Client{"franz": franz.Client{}, "confluent": confluent.Client{}}[o.clients],
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		StateListener: func(_, to streams.State) {
			if to == streams.Running {
				running <- struct{}{}
			}
		}}
	topology, err := topology(o)
	if err != nil {
		return 0, 0, err
	}
	app, err := streams.New(topology, cfg)
	if err != nil {
		return 0, 0, err
	}
	res := make(chan error, 1)
	go func() { res <- app.Run(ctx) }()
	select {
	case err := <-res:
		return 0, 0, errors.Join(errors.New("it ended before it ran"), err)
	case <-running:
	}
	end := time.Now()
	first := end
	for _, w := range app.Status().Workers {
		for _, t := range w.Tasks {
			for _, r := range t.Restore {
				n += r.Records
				if r.Started.Before(first) {
					first = r.Started
				}
			}
		}
	}
	err = errors.Join(app.Close(ctx), <-res)
	return n, end.Sub(first).Seconds(), err
}

// topology only has the store: there is nothing in the input.
func topology(o options) (*streams.Topology, error) {
	rows := processor.KeyValue(store, serde.Bytes, serde.Bytes)
	topology := processor.NewTopology()
	processor.AddSource(topology, "source", serde.Bytes, serde.Bytes, o.input())
	processor.AddProcessor(topology, "keep", func() processor.Processor[[]byte, []byte, []byte, []byte] {
		return processor.Func[[]byte, []byte, []byte, []byte](func(ctx processor.Context[[]byte, []byte], r processor.Record[[]byte, []byte]) error {
			return rows.In(ctx).Put(r.Key, r.Value)
		})
	}, []string{"source"}, rows)
	return topology, topology.Build()
}
