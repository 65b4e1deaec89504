package streams_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// Everything that may happen to a task at a take-over happens at once, to different tasks of the same workers: disks that
// are lost or put back to an older state (restored beside the others; records replayed), changelogs that are emptied
// (written again), records that fail their task alone, connections that break, stops in the middle. In the end all
// stores have counted each record once.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			x := &atOnce{env: newEnv(t, testbroker.Kfake(t), clients[0]), g: g, random: testseed.New(t), copies: t.TempDir(), given: map[string]int{}}
			x.in += "-4"
			x.create(x.in, atOncePartitions)
			x.round(true)
			for range atOnceRounds() {
				x.round(x.random.IntN(3) > 0)
			}
			x.poisoned = -1
			x.again = true
			x.round(true)
			x.check()
		})
	}
}

const atOncePartitions = 4

func atOnceRounds() int {
	if testing.Short() {
		return 3
	}
	return 7
}

// atOnce is the application of the test, and what was done to each partition's task.
type atOnce struct {
	*env
	g      streams.Guarantee
	random *rand.Rand
	copies string // of tasks' directories

	n        int                    // rounds
	given    map[string]int         // by key
	again    bool                   // every key is to come once more
	poisoned int                    // the partition whose records fail; -1: none
	whole    [atOncePartitions]bool // the store and the changelog both hold everything
	emptied  [atOncePartitions]bool // the store alone does
	fails    atomic.Int32           // the round whose poison fails
}

func (x *atOnce) topology() *streams.Topology {
	stores := []processor.KeyValueHandle[string, int64]{processor.KeyValue("a", serde.String, serde.Int64), processor.KeyValue("b", serde.String, serde.Int64)}
	if x.g == streams.AtLeastOnce {
		stores = append(stores, processor.KeyValue("local", serde.String, serde.Int64).Unlogged())
	}
	var defs []processor.StoreDef
	for _, s := range stores {
		defs = append(defs, s)
	}
	t := processor.NewTopology()
	processor.AddSource(t, "in", serde.String, serde.String, x.in)
	processor.AddProcessor(t, "count", each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		if r.Value == fmt.Sprint("poison", x.fails.Load()) {
			return errors.New("of the user")
		}
		return (&tally{stores}).Process(ctx, r)
	}), []string{"in"}, defs...)
	processor.AddSink(t, "out", x.out, serde.String, serde.String, "count")
	return t
}

// round does something to each task while nothing runs, and runs the application, to the end or not.
func (x *atOnce) round(toTheEnd bool) {
	x.t.Helper()
	x.n++
	for p := range atOncePartitions {
		x.harm(p)
	}
	if x.n > 1 && x.poisoned >= 0 {
		x.poisoned = x.random.IntN(2*atOncePartitions) % (atOncePartitions + 1)
	}
	x.fails.Store(int32(x.n))
	x.t.Logf("round %d: poisoned %d, to the end: %v", x.n, x.poisoned, toTheEnd)
	cfg := x.config()
	cfg.Guarantee, cfg.Workers, cfg.OnTaskFailure, cfg.CommitInterval = x.g, 1+x.random.IntN(2), streams.KeepOthers, 5*time.Millisecond
	cfg.Limits.ShortRestore = 1 + 50*x.random.IntN(2)
	cfg.Settings.RequestTimeout, cfg.TransactionTimeout = time.Second, 3*time.Second
	app := x.start(x.topology(), cfg)
	for range 3 {
		x.produceSome()
		wait(time.Duration(x.random.IntN(60)) * time.Millisecond)
		if x.n > 1 && x.random.IntN(2) == 0 {
			x.b.Network.Break()
			x.b.Network.Heal()
		}
	}
	if !toTheEnd {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = app.Close(ctx)
		x.whole = [atOncePartitions]bool{}
		return
	}
	app.catchUp()
	kafkatest.Eventually(x.t, 90*time.Second, "the application runs", func() bool { return app.State() == streams.Running || failedTasks(app) > 0 })
	if err := app.Close(x.ctx()); err != nil && !strings.Contains(err.Error(), "of the user") {
		x.t.Fatalf("round %d: %v", x.n, err)
	}
	for p := range atOncePartitions {
		x.whole[p] = p != x.poisoned
		x.emptied[p] = x.emptied[p] && !x.whole[p]
	}
}

// produceSome gives each partition records of its keys; one of the poisoned one fails.
func (x *atOnce) produceSome() {
	x.t.Helper()
	var records []kafka.Record
	for p := range atOncePartitions {
		keys := []string{fmt.Sprint("p", p), fmt.Sprint("p", p, "-", len(x.given))} // one of them in this moment only
		n := 1 + x.random.IntN(40)
		for i := range n {
			value := "v"
			if p == x.poisoned && i == n/2 && x.n > 1 {
				value = fmt.Sprint("poison", x.n)
			}
			for _, key := range keys {
				records = append(records, x.record(p, key, value))
				value = "v"
			}
		}
		if x.again {
			for key := range x.given {
				if strings.HasPrefix(key, keys[0]) {
					records = append(records, x.record(p, key, "v"))
				}
			}
		}
	}
	x.produceRecords(records...)
}

func (x *atOnce) record(p int, key, value string) kafka.Record {
	x.given[key]++
	return kafka.Record{Topic: x.in, Partition: int32(p), Timestamp: 1000, Key: []byte(key), Value: []byte(value)}
}

// harm does to a task what can be made good.
func (x *atOnce) harm(p int) {
	x.t.Helper()
	dir := filepath.Join(x.dir, x.app, fmt.Sprint("0_", p))
	kept := filepath.Join(x.copies, fmt.Sprint(p))
	if _, err := os.Stat(dir); err != nil || x.emptied[p] {
		return
	}
	switch x.random.IntN(5) {
	case 0:
		x.t.Logf("round %d: task 0_%d loses its disk", x.n, p)
		must(x.t, os.RemoveAll(dir))
		x.whole[p] = false
	case 1:
		if _, err := os.Stat(kept); err == nil {
			x.t.Logf("round %d: task 0_%d is put back", x.n, p)
			must(x.t, os.RemoveAll(dir))
			must(x.t, os.CopyFS(dir, os.DirFS(kept)))
			x.whole[p] = false
		}
	case 2:
		must(x.t, os.RemoveAll(kept))
		must(x.t, os.CopyFS(kept, os.DirFS(dir)))
	case 3:
		if x.whole[p] {
			x.t.Logf("round %d: the changelog of task 0_%d is emptied", x.n, p)
			x.empty(kafka.TopicPartition{Topic: x.app + "-a-changelog", Partition: int32(p)})
			x.emptied[p] = true
		}
	}
}

// empty deletes all records of a changelog's partition.
func (x *atOnce) empty(tp kafka.TopicPartition) {
	x.t.Helper()
	ends, err := x.admin.ListOffsets(x.ctx(), kafka.HighWatermark, tp)
	must(x.t, err)
	x.setPolicy(tp.Topic, "compact,delete")
	must(x.t, x.admin.DeleteRecords(x.ctx(), ends))
	x.setPolicy(tp.Topic, "compact")
}

// check compares the last counts of all stores with what was given.
func (x *atOnce) check() {
	x.t.Helper()
	last := map[string]string{}
	for _, r := range x.read(x.out) {
		last[string(r.Key)] = string(r.Value)
	}
	for key, n := range x.given {
		want := fmt.Sprintf("%d/%d", n, n)
		if x.g == streams.AtLeastOnce {
			want = fmt.Sprintf("%s/%d", want, n)
		}
		if got := last[key]; got != want {
			x.t.Errorf("counts of %s: %s, want %s", key, got, want)
		}
	}
}
