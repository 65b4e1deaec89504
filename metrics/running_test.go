package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/metrics"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

const records = 100

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newInput makes a broker with an input topic of two partitions, and records in it.
func newInput(t *testing.T) (b testbroker.Broker, topic string) {
	t.Helper()
	b = testbroker.Kfake(t)
	topic = b.CreateTopic(t, "in", 2, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i := range records {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(fmt.Sprint("k", i%10)), Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return b, topic
}

// number reads a series; -1: it is not there.
func number(got map[string]string, series string) float64 {
	n, err := strconv.ParseFloat(got[series], 64)
	if err != nil {
		return -1
	}
	return n
}

// What the names say is what an application does.
func TestRunningApp(t *testing.T) {
	b, topic := newInput(t)
	builder := streams.NewBuilder()
	streams.Stream(builder, topic, streams.With(serde.String, serde.String)).GroupByKey().Count(streams.Materialized{Name: "counts"})
	topology, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := streams.Config{AppID: b.Name(t, "app"), Brokers: b.Addrs, StateDir: t.TempDir(), Logger: quiet}
	run := func(look func(app *streams.App)) {
		t.Helper()
		app, err := streams.New(topology, cfg)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- app.Run(context.Background()) }() // ended by Close
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := app.CaughtUp(ctx); err != nil {
			t.Error(err)
		} else {
			look(app)
		}
		if err := app.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := metricsOf(t, metrics.New(app)); got["app_state state=closed"] != "1" || got["tasks state=running"] != "0" {
			t.Errorf("after Close: %v", got)
		}
	}
	run(func(app *streams.App) {
		got := metricsOf(t, metrics.New(app))
		if got["app_state state=running"] != "1" || got["tasks state=running"] != "2" || got["local_tasks latest=true"] != "2" || got["scan_directories found=state"] != "0" {
			t.Errorf("%v", got)
		}
		if n := number(got, "worker_processed_records_total worker=0"); n != records {
			t.Errorf("%v records were processed: %v", n, got)
		}
		for _, series := range []string{"worker_commits_total worker=0", "worker_commit_seconds_total worker=0", "local_changelog_offset store=counts task=0_0", "cache_bytes", "task_stores"} {
			if number(got, series) <= 0 {
				t.Errorf("%s is %q", series, got[series])
			}
		}
		if number(got, "task_unsynced_offsets store=counts task=0_0") < 0 {
			t.Errorf("no unsynced offsets: %v", got)
		}
	})
	for _, id := range []string{"0_0", "0_1"} { // the disk is lost, but not the member's name
		if err := os.RemoveAll(filepath.Join(cfg.StateDir, cfg.AppID, id)); err != nil {
			t.Fatal(err)
		}
	}
	run(func(app *streams.App) {
		got := metricsOf(t, metrics.New(app))
		if number(got, "restore_records store=counts task=0_0")+number(got, "restore_records store=counts task=0_1") < 10 || number(got, "restore_remaining_offsets store=counts task=0_0") != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestRunningHost(t *testing.T) {
	b, topic := newInput(t)
	seen := processor.KeyValue("seen", serde.Bytes, serde.Bytes)
	group := b.Name(t, "group")
	host, err := franz.Open(t.Context(), []kgo.Opt{kgo.SeedBrokers(b.Addrs...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic)},
		embedded.Config{App: group, StateDir: t.TempDir(), Stores: []processor.StoreDef{seen}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	defer func() {
		if err := host.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	c := metrics.NewHost(host)
	for got := metricsOf(t, c); number(got, "worker_processed_records_total worker=host") < records; got = metricsOf(t, c) {
		wait, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		for _, r := range host.Client().PollFetches(wait).Records() {
			if err := host.Process(r, func(task *embedded.Task) error { return seen.In(task).Put(r.Key, r.Value) }); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if ctx.Err() != nil {
			t.Fatalf("%v", got)
		}
	}
	if err := host.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := metricsOf(t, c); got["tasks state=running"] != "2" || number(got, "worker_commits_total worker=host") < 1 || number(got, "task_stores") != 2 || number(got, "cache_bytes") <= 0 {
		t.Errorf("%v", got)
	}
}
