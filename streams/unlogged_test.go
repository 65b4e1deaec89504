package streams_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// tally counts keys in several stores at once, and sends the counts on, joined by slashes.
type tally struct {
	stores []processor.KeyValueHandle[string, int64]
}

func (c *tally) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	var counts []string
	for _, h := range c.stores {
		s := h.In(ctx)
		n, _, err := s.Get(r.Key)
		if err != nil {
			return err
		}
		if err := s.Put(r.Key, n+1); err != nil {
			return err
		}
		counts = append(counts, fmt.Sprint(n+1))
	}
	return ctx.Forward(processor.WithValue(r, strings.Join(counts, "/")))
}

var (
	loggedCounts = processor.KeyValue("logged", serde.String, serde.Int64)
	localCounts  = processor.KeyValue("local", serde.String, serde.Int64).Unlogged()
	laterCounts  = processor.KeyValue("later", serde.String, serde.Int64).Unlogged()
)

// countingIn is a topology that counts the input's keys in stores.
func (e *env) countingIn(stores ...processor.KeyValueHandle[string, int64]) *streams.Topology {
	t := processor.NewTopology()
	processor.AddSource(t, "in", serde.String, serde.String, e.in)
	var defs []processor.StoreDef
	for _, s := range stores {
		defs = append(defs, s)
	}
	processor.AddProcessor[string, string, string, string](t, "count", func() *tally { return &tally{stores} }, []string{"in"}, defs...)
	processor.AddSink(t, "out", e.out, serde.String, serde.String, "count")
	return t
}

// give produces n records of each of the keys k0 to k9, an even one in partition 0.
func (e *env) give(n int) {
	e.t.Helper()
	var records []kafka.Record
	for range n {
		for k := range 10 {
			records = append(records, kafka.Record{Topic: e.in, Partition: int32(k % 2), Timestamp: int64(1000 + len(records)), Key: fmt.Append(nil, "k", k), Value: []byte("v")})
		}
	}
	e.produceRecords(records...)
}

// outputs checks that each key has exactly these counts in the output, in this order.
func (e *env) outputs(want ...string) {
	e.t.Helper()
	got := map[string][]string{}
	for _, r := range e.read(e.out) {
		got[string(r.Key)] = append(got[string(r.Key)], string(r.Value))
	}
	for k := range 10 {
		if g := got[fmt.Sprint("k", k)]; fmt.Sprint(g) != fmt.Sprint(want) {
			e.t.Errorf("outputs of k%d: %v, want %v", k, g, want)
		}
	}
}

// run processes everything and stops. It gives the records replayed.
func (e *env) run(t *streams.Topology, change func(*streams.Config)) (replayed int64) {
	e.t.Helper()
	cfg := e.config()
	if change != nil {
		change(&cfg)
	}
	app := e.start(t, cfg)
	app.catchUp()
	for _, w := range app.Status().Workers {
		for _, s := range w.Tasks {
			replayed += s.Replay.Records
			if s.Replay.Left != 0 {
				e.t.Errorf("task %v: %+v", s.ID, s.Replay)
			}
		}
	}
	app.close()
	return replayed
}

func (e *env) state() string { return filepath.Join(e.dir, e.app) }

// keepState gives a function that puts the state directory back to what it is now.
func (e *env) keepState() func() {
	e.t.Helper()
	kept := filepath.Join(e.t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(e.state())); err != nil {
		e.t.Fatal(err)
	}
	return func() {
		e.t.Helper()
		if err := os.RemoveAll(e.state()); err != nil {
			e.t.Fatal(err)
		}
		if err := os.CopyFS(e.state(), os.DirFS(kept)); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *env) loseState() {
	e.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(e.state(), "*_*"))
	if err != nil || len(dirs) == 0 {
		e.t.Fatalf("task directories: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			e.t.Fatal(err)
		}
	}
}

// A store without a changelog that is behind the group, because a crash took the end of it or the disk was lost, is
// made good from the input, and nothing else notices: not the store beside it, not the output.
func TestUnloggedStoreIsReplayed(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e = newEnv(t, e.b, e.client)
		topology := func() *streams.Topology { return e.countingIn(localCounts, loggedCounts) }
		e.give(2)
		if n := e.run(topology(), nil); n != 0 {
			t.Errorf("%d records were replayed in a new group", n)
		}
		have, err := e.admin.Topics(e.ctx(), task.ChangelogTopic(e.app, "local"), task.ChangelogTopic(e.app, "logged"))
		if err != nil || len(have) != 1 {
			t.Errorf("changelogs %v, %v", have, err)
		}
		back := e.keepState()
		e.give(2)
		if n := e.run(topology(), nil); n != 0 {
			t.Errorf("%d records were replayed after a clean stop", n)
		}
		back() // as after a crash that lost the log's buffer
		e.give(1)
		if n := e.run(topology(), nil); n != 20 {
			t.Errorf("%d records were replayed, want 20", n)
		}
		e.loseState()
		e.give(1)
		if n := e.run(topology(), nil); n != 50 {
			t.Errorf("%d records were replayed, want 50", n)
		}
		e.outputs("1/1", "2/2", "3/3", "4/4", "5/5", "6/6")
	})
}

// What a group that began at the end of its input made of the rest is made of the same again.
func TestReplayBeginsWhereTheStoreDid(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e = newEnv(t, e.b, e.client)
		late := func(c *streams.Config) { c.Start = streams.Latest() }
		e.give(3)
		e.run(e.countingIn(localCounts), late)
		e.give(1)
		e.run(e.countingIn(localCounts), late)
		e.run(e.countingIn(localCounts, laterCounts), late) // begins here
		e.give(1)
		e.run(e.countingIn(localCounts, laterCounts), late)
		e.loseState()
		e.give(1)
		if n := e.run(e.countingIn(localCounts, laterCounts), late); n != 20 {
			t.Errorf("%d records were replayed, want 20", n)
		}
		e.outputs("1", "2/1", "3/2")
	})
}

// An input that does not reach back fails the task with the store's name, at each start, until an operator
// has the store begin empty.
func TestUnloggedStoreWithoutItsInput(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e = newEnv(t, e.b, e.client)
		topology := func() *streams.Topology { return e.countingIn(localCounts, loggedCounts) }
		e.give(2)
		e.run(topology(), nil)
		e.loseState()
		if err := e.admin.DeleteRecords(e.ctx(), map[kafka.TopicPartition]int64{{Topic: e.in}: 3}); err != nil {
			t.Fatal(err)
		}
		e.give(1)
		for range 2 {
			err := e.start(topology(), e.config()).failure()
			if !errors.Is(err, task.ErrInputGone) {
				t.Errorf("error %v", err)
			}
			contains(t, err, "task 0_0", "local", e.in, "3 records", "accept-reset")
		}
		accept := func(c *streams.Config) { c.OnConflict = task.AcceptReset }
		if n := e.run(topology(), accept); n != 10 { // of partition 1
			t.Errorf("%d records were replayed, want 10", n)
		}
		e.loseState()
		e.give(1)
		// The store that began anew does not need what is gone.
		if n := e.run(topology(), nil); n != 5+15 {
			t.Errorf("%d records were replayed, want 20", n)
		}
		got := map[string][]string{}
		for _, r := range e.read(e.out) {
			got[string(r.Key)] = append(got[string(r.Key)], string(r.Value))
		}
		if s := fmt.Sprint(got["k0"], got["k1"]); s != "[1/1 2/2 1/3 2/4] [1/1 2/2 3/3 4/4]" {
			t.Errorf("outputs %s", s)
		}
	})
}

// Behind a repartition topic, in the DSL, a store is made good from what the topic still holds.
func TestUnloggedTableBehindRepartition(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e = newEnv(t, e.b, e.client)
		topology := func() *streams.Topology {
			b := streams.NewBuilder()
			lines := streams.Stream(b, e.in, streams.With(serde.String, serde.String))
			words := streams.FlatMapValues(lines, strings.Fields, serde.String)
			streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
				Count(streams.Materialized{Name: "counts", Unlogged: true}).ToStream().To(e.out)
			topology, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			return topology
		}
		purge := func(c *streams.Config) {
			c.Limits.PurgeInterval, c.Store.SyncInterval = 10*time.Millisecond, 10*time.Millisecond
		}
		in, want := lines(100)
		e.produce(in...)
		e.run(topology(), purge)
		e.produce(in...)
		e.run(topology(), nil)
		back := e.keepState()
		e.produce(in...)
		e.run(topology(), nil)
		back()
		e.produce(in...)
		if n := e.run(topology(), nil); n != 300 {
			t.Errorf("%d records were replayed, want 300", n)
		}
		got, all := e.counts(e.out)
		for w, n := range want {
			if got[w] != 4*n || len(all[w]) != int(4*n) {
				t.Errorf("%s: %d in %d outputs, want %d", w, got[w], len(all[w]), 4*n)
			}
		}
	})
}

func TestUnloggedIsForAtLeastOnce(t *testing.T) {
	e := &env{t: t, in: "in", out: "out"}
	cfg := streams.Config{AppID: "app", Brokers: []string{"localhost:1"}, StateDir: t.TempDir(), Guarantee: streams.ExactlyOnce}
	_, err := streams.New(e.countingIn(localCounts, laterCounts), cfg)
	contains(t, err, "store local", "store later", "at-least-once")
}

// Every table that is materialized can be without a changelog, and its place in the topology is the same.
func TestUnloggedTables(t *testing.T) {
	build := func(unlogged bool) *streams.Topology {
		kept := func(name string) streams.Materialized { return streams.Materialized{Name: name, Unlogged: unlogged} }
		b := streams.NewBuilder()
		with := streams.With(serde.String, serde.String)
		table := streams.Table(b, "table", with, kept("table"))
		history := kept("history")
		history.History = time.Hour
		streams.Table(b, "versions", with, history)
		stream := streams.Stream(b, "stream", with)
		stream.ToTable(kept("to-table"))
		stream.GroupByKey().Count(kept("count"))
		table.Filter(func(string, string) bool { return true }, kept("filter"))
		streams.GroupTable(table, func(k, v string) (string, string) { return v, k }, with).Count(kept("table-count"))
		topology, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return topology
	}
	unlogged := build(true)
	n := 0
	for _, sub := range unlogged.Subtopologies() {
		for _, s := range sub.Stores {
			if n++; !s.Unlogged {
				t.Errorf("store %s has a changelog", s.Name)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d stores, want 6", n)
	}
	if a, b := build(false).Describe(), unlogged.Describe(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("described as\n%v\ninstead of\n%v", b, a)
	}
}
