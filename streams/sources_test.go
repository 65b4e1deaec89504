package streams_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// A sub-topology reads several topics with different numbers of partitions: it has as many
// tasks as the largest, and each reads what there is of the others. Three runs count on.
func TestSourcesOfDifferentSizes(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topics := []string{e.in, e.in + "-5", e.in + "-1"}
		sizes := []int32{2, 5, 1}
		e.create(topics[1], sizes[1])
		e.create(topics[2], sizes[2])
		b := streams.NewBuilder()
		with := streams.With(serde.String, serde.String)
		all := streams.Stream(b, topics[0], with).Merge(streams.Stream(b, topics[1], with)).Merge(streams.Stream(b, topics[2], with))
		streams.GroupBy(all, func(_, w string) string { return w }, serde.String).Count(streams.Materialized{Name: "counts"}).ToStream().To(e.out)
		topology, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		cfg := e.config()
		cfg.Workers = 2
		cfg.Limits.MaxTaskIdle = 30 * time.Millisecond
		want := map[string]int64{}
		for range 3 {
			app := e.start(topology, cfg)
			var records []kafka.Record
			for i := range 100 {
				for j, topic := range topics {
					w := fmt.Sprint("w", i%11)
					want[w]++
					records = append(records, kafka.Record{Topic: topic, Partition: int32(i) % sizes[j], Timestamp: int64(1000 + i), Value: []byte(w), Headers: []kafka.Header{{Key: "h", Value: []byte("v")}}})
				}
			}
			e.produceRecords(records...)
			app.catchUp()
			app.close()
		}
		e.checkCounts(streams.ExactlyOnce, want) // nobody crashed: nothing repeats
	})
}

// An application may write to the topic that it reads.
func TestOutputIsOwnInput(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			e := newEnv(t, e.b, e.client)
			topology := processor.NewTopology()
			processor.AddSource(topology, "source", serde.String, serde.String, e.in)
			processor.AddProcessor(topology, "work", each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				if len(r.Value) >= 5 {
					return nil
				}
				return ctx.Forward(processor.WithValue(r, r.Value+"x"))
			}), []string{"source"})
			processor.AddSink(topology, "sink", e.in, serde.String, serde.String, "work")
			cfg := e.config()
			cfg.Guarantee = g
			e.produce("", "", "")
			app := e.start(topology, cfg)
			kafkatest.Eventually(t, time.Minute, "three records, and five for each", func() bool { return len(e.read(e.in)) == 18 })
			app.catchUp()
			app.close()
		}
	})
}

// A hundred tasks start, run, tell of themselves while they do, and stop, in seconds.
func TestManyPartitions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	many := e.in + "-many"
	e.create(many, 100)
	b := streams.NewBuilder()
	streams.Stream(b, many, streams.With(serde.String, serde.String)).GroupByKey().Count(streams.Materialized{Name: "counts"}).ToStream().To(e.out)
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := e.config()
	cfg.Workers = 3
	app := e.start(topology, cfg)
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-app.Changed():
				app.Status()
			}
		}
	})
	app.catchUp()
	want := map[string]int64{}
	var records []kafka.Record
	for i := range 1000 {
		w := fmt.Sprint("w", i%100)
		want[w]++
		records = append(records, kafka.Record{Topic: many, Partition: int32(i % 100), Timestamp: int64(1000 + i), Key: []byte(w), Value: []byte("x")})
	}
	e.produceRecords(records...)
	app.catchUp()
	close(done)
	watch.Wait()
	app.close()
	e.checkCounts(streams.ExactlyOnce, want)
}
