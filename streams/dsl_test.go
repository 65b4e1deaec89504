package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// flow runs a topology as one partition would, without Kafka: what goes to an internal topic
// comes back before the next record.
type flow struct {
	t         testing.TB
	topology  *Topology
	instances []*processor.Instance
	stores    []*statestore.TaskStore // nil for a sub-topology without stores
	queue     []*kafka.Record         // in internal topics
	outputs   []string                // in others
	drops     []string
	silent    *int // counts outputs, which are then not kept
}

func newFlow(t testing.TB, b *Builder) *flow {
	t.Helper()
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return runFlow(t, topology)
}

func runFlow(t testing.TB, topology *Topology) *flow {
	t.Helper()
	f := &flow{t: t, topology: topology}
	for _, sub := range topology.Subtopologies() {
		f.open(sub)
	}
	t.Cleanup(func() {
		for i, in := range f.instances {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if s := f.stores[i]; s != nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return f
}

func (f *flow) open(sub *processor.Subtopology) {
	f.t.Helper()
	var store *statestore.TaskStore
	if len(sub.Stores) > 0 {
		store = f.openStore(sub.Stores)
	}
	in, err := sub.NewInstance(processor.Env{
		TaskID:  processor.TaskID{Subtopology: sub.ID},
		Stores:  store,
		Send:    f.take,
		Now:     func() time.Time { return time.UnixMilli(0) },
		Commit:  func() {},
		Dropped: func(node, reason string) { f.drops = append(f.drops, node+": "+reason) },
	}, time.Time{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.instances, f.stores = append(f.instances, in), append(f.stores, store)
}

func (f *flow) openStore(defs []processor.Definition) *statestore.TaskStore {
	f.t.Helper()
	store, err := statestore.Open(f.t.TempDir(), statestore.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	var specs []statestore.Spec
	for _, d := range defs {
		specs = append(specs, d.Spec())
	}
	if err := store.Register(specs...); err != nil {
		f.t.Fatal(err)
	}
	return store
}

func (f *flow) take(o processor.Output) error {
	if f.silent != nil {
		*f.silent++
		return nil
	}
	if _, ok := f.topology.Internal(o.Topic); ok {
		r := &kafka.Record{Topic: o.Topic, Timestamp: o.Timestamp.UnixMilli(), Headers: o.Headers}
		if o.Key != nil {
			r.Key = append([]byte{}, o.Key...)
		}
		if o.Value != nil {
			r.Value = append([]byte{}, o.Value...)
		}
		f.queue = append(f.queue, r)
		return nil
	}
	s := fmt.Sprintf("%s %s=%s @%d", o.Topic, text(o.Key), text(o.Value), o.Timestamp.UnixMilli())
	for _, h := range o.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, text(h.Value))
	}
	f.outputs = append(f.outputs, s)
	return nil
}

// text shows bytes: null as ∅, and the 8 bytes of an int64 as a number.
func text(b []byte) string {
	if b == nil {
		return "∅"
	}
	if len(b) == 8 && b[0] == 0 {
		n, _ := serde.Int64.Decode(b)
		return fmt.Sprint(n)
	}
	return string(b)
}

// send runs a record and all that follows from it. A key or value ∅ is null.
func (f *flow) send(topic, key, value string, ms int64, headers ...kafka.Header) {
	f.t.Helper()
	null := func(s string) []byte {
		if s == "∅" {
			return nil
		}
		return []byte(s)
	}
	f.queue = append(f.queue, &kafka.Record{Topic: topic, Key: null(key), Value: null(value), Timestamp: ms, Headers: headers})
	for len(f.queue) > 0 {
		r := f.queue[0]
		f.queue = f.queue[1:]
		for i, sub := range f.topology.Subtopologies() {
			for _, s := range sub.Sources {
				if s != r.Topic {
					continue
				}
				if err := f.instances[i].Process(r.Topic, r, r.Timestamp); err != nil {
					f.t.Fatalf("%s: %v", f.instances[i].At(), err)
				}
			}
		}
	}
}

// expect compares what was written to the topics that are not internal since the last call.
func (f *flow) expect(want ...string) {
	f.t.Helper()
	if got := strings.Join(f.outputs, "\n"); got != strings.Join(want, "\n") {
		f.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	f.outputs = nil
}

// expectDrops compares what was dropped since the last call, as "node: reason".
func (f *flow) expectDrops(want ...string) {
	f.t.Helper()
	if got := strings.Join(f.drops, "\n"); got != strings.Join(want, "\n") {
		f.t.Errorf("dropped\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	f.drops = nil
}

var texts = With(serde.String, serde.String)

func TestWordCount(t *testing.T) {
	b := NewBuilder()
	lines := Stream(b, "lines", With(serde.String, serde.String))
	words := FlatMapValues(lines, strings.Fields, serde.String)
	counts := GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(Materialized{Name: "counts"})
	counts.ToStream().To("counts")

	f := newFlow(t, b)
	h := kafka.Header{Key: "h", Value: []byte("x")}
	f.send("lines", "1", "to be or", 10, h)
	f.send("lines", "2", "not to be", 5)
	f.expect("counts to=1 @10 h:x", "counts be=1 @10 h:x", "counts or=1 @10 h:x",
		"counts not=1 @5", "counts to=2 @10", "counts be=2 @10")
	f.expectDrops()
}

var seen = processor.KeyValue("seen", serde.String, serde.Int64)

type dedupe struct{}

func newDedupe() dedupe { return dedupe{} }

func (dedupe) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	s := seen.In(ctx)
	if _, dup, err := s.Get(r.Key); dup || err != nil {
		return err
	}
	if err := s.Put(r.Key, r.Timestamp.UnixMilli()); err != nil {
		return err
	}
	return ctx.Forward(r)
}

func TestProcessWithAStore(t *testing.T) {
	b := NewBuilder()
	in := Stream(b, "events", With(serde.String, serde.String))
	Process(in, newDedupe, With(serde.String, serde.String), seen).To("unique")
	f := newFlow(t, b)
	f.send("events", "a", "1", 1)
	f.send("events", "a", "2", 2)
	f.send("events", "b", "3", 3)
	f.expect("unique a=1 @1", "unique b=3 @3")
}

func TestStateless(t *testing.T) {
	b := NewBuilder()
	in := Stream(b, "in", texts)
	in.Filter(func(k, v string) bool { return v == "x" }).To("filter")
	in.FilterNot(func(k, v string) bool { return v == "x" }).To("filter-not")
	MapValues(in, func(v string) int64 { return int64(len(v)) }, serde.Int64).To("map-values")
	FlatMapValues(in, func(v string) []string { return strings.Split(v, "") }, serde.String).To("flat-map-values")
	Map(in, func(k, v string) (string, string) { return v, k }, texts).To("map")
	FlatMap(in, func(k, v string) []KeyValue[string, string] {
		return []KeyValue[string, string]{{k, v}, {k + "2", v}}
	}, texts).To("flat-map")
	SelectKey(in, func(k, v string) int64 { return int64(len(k)) }, serde.Int64).To("select-key")
	var looked []string
	in.Peek(func(k, v string) { looked = append(looked, "peek "+k) }).To("peek")
	in.Foreach(func(k, v string) { looked = append(looked, "foreach "+k) })
	in.Merge(Stream(b, "other", texts)).To("merge")

	f := newFlow(t, b)
	h := kafka.Header{Key: "h", Value: []byte("1")}
	f.send("in", "k", "x", 7, h)
	f.expect("filter k=x @7 h:1", "map-values k=1 @7 h:1", "flat-map-values k=x @7 h:1", "map x=k @7 h:1",
		"flat-map k=x @7 h:1", "flat-map k2=x @7 h:1", "select-key 1=x @7 h:1", "peek k=x @7 h:1", "merge k=x @7 h:1")
	f.send("in", "", "ab", 8)
	f.expect("filter-not =ab @8", "map-values =2 @8", "flat-map-values =a @8", "flat-map-values =b @8", "map ab= @8",
		"flat-map =ab @8", "flat-map 2=ab @8", "select-key 0=ab @8", "peek =ab @8", "merge =ab @8")
	f.send("other", "o", "x", 1)
	f.expect("merge o=x @1")
	if got := strings.Join(looked, ","); got != "peek k,foreach k,peek ,foreach " {
		t.Error(got)
	}
	f.expectDrops()
}

func TestSplit(t *testing.T) {
	b := NewBuilder()
	is := func(want string) func(k, v string) bool {
		return func(_, v string) bool { return strings.Contains(v, want) }
	}
	sizes := Stream(b, "in", texts).Split()
	sizes.Branch(is("a")).To("a")
	sizes.DefaultBranch().To("rest")
	sizes.Branch(is("b")).To("b")
	none := Stream(b, "in2", texts).Split(Named("split"))
	none.Branch(is("a"), Named("-a")).To("a2")
	f := newFlow(t, b)
	for _, v := range []string{"a", "ab", "b", "c"} {
		f.send("in", "k", v, 1)
		f.send("in2", "k", v, 1)
	}
	f.expect("a k=a @1", "a2 k=a @1", "a k=ab @1", "a2 k=ab @1", "b k=b @1", "rest k=c @1")
}

func TestCountKeepsTheLargestTimestampAndGoesOn(t *testing.T) {
	b := NewBuilder()
	Stream(b, "in", texts).GroupByKey().Count(Materialized{}).ToStream().To("out")
	f := newFlow(t, b)
	for _, ms := range []int64{10, 5, 10, 20, 19} {
		f.send("in", "k", "v", ms)
	}
	f.expect("out k=1 @10", "out k=2 @10", "out k=3 @10", "out k=4 @20", "out k=5 @20")
}

// TestProcessorReadsTheStoreOfACount: an operator's store is connected by a handle of the same
// declaration, and puts the processor into the same sub-topology.
func TestProcessorReadsTheStoreOfACount(t *testing.T) {
	counts := processor.TimestampedKeyValue("counts", serde.String, serde.Int64)
	b := NewBuilder()
	Stream(b, "in", texts).GroupByKey().Count(Materialized{Name: "counts"})
	newAsk := func() processor.Func[string, string, string, int64] {
		return func(ctx processor.Context[string, int64], r processor.Record[string, string]) error {
			n, _, _, err := counts.In(ctx).Get(r.Key)
			if err != nil {
				return err
			}
			return ctx.Forward(processor.WithValue(r, n))
		}
	}
	Process(Stream(b, "ask", texts), newAsk, With(serde.String, serde.Int64).Named("ask"), counts).To("answers")
	f := newFlow(t, b)
	if n := len(f.instances); n != 1 {
		t.Fatalf("%d sub-topologies", n)
	}
	f.send("in", "k", "v", 1)
	f.send("in", "k", "v", 1)
	f.send("ask", "k", "?", 1)
	f.expect("answers k=2 @1")
}

func TestStreamsOfOneTopicShareASource(t *testing.T) {
	b := NewBuilder()
	first := StreamTopics(b, []string{"a", "b", "a"}, texts)
	second := StreamTopics(b, []string{"b", "a"}, texts)
	second.To("second")
	first.Merge(second).To("merged")
	first.Merge(first).To("same")
	f := newFlow(t, b)
	f.send("a", "k", "v", 1)
	f.send("b", "k", "w", 2)
	f.expect("second k=v @1", "merged k=v @1", "same k=v @1", "second k=w @2", "merged k=w @2", "same k=w @2")
}

func TestBuildAgainAfterMoreWasAdded(t *testing.T) {
	b := NewBuilder()
	in := Stream(b, "in", texts)
	again := Stream(b, "in", texts)
	split := in.Split()
	split.Branch(func(k, v string) bool { return v == "v" }).To("a")
	before, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	was := before.Describe()
	again.Filter(func(k, v string) bool { return true }).To("b")
	split.DefaultBranch().To("c")
	split.Branch(func(k, v string) bool { return v == "v" }).To("d")
	f := newFlow(t, b)
	f.send("in", "k", "no", 1)
	f.send("in", "k", "v", 1)
	f.expect("c k=no @1", "b k=no @1", "a k=v @1", "b k=v @1")

	old := runFlow(t, before)
	old.send("in", "k", "no", 1)
	old.send("in", "k", "v", 1)
	old.expect("a k=v @1")
	if before.Describe() != was {
		t.Error("the first topology has changed")
	}
}

func TestRepartition(t *testing.T) {
	b := NewBuilder()
	in := Stream(b, "in", texts)
	by := SelectKey(in, func(k, v string) string { return v }, serde.String).Repartition(Repartitioned{Name: "by-value", Partitions: 7})
	by.To("out")
	f := newFlow(t, b)
	if topics := f.topology.InternalTopics(); len(topics) != 1 || topics[0] != (processor.InternalTopic{Name: "by-value-repartition", Partitions: 7}) {
		t.Error(topics)
	}
	f.send("in", "k", "v", 3, kafka.Header{Key: "h"})
	f.expect("out v=v @3 h:∅")
}

// TestRepartitionNameThatEndsLikeATopic is not given the ending twice, as in Kafka Streams.
func TestRepartitionNameThatEndsLikeATopic(t *testing.T) {
	b := NewBuilder()
	Stream(b, "in", texts).Repartition(Repartitioned{Name: "by-user-repartition"}).To("out")
	f := newFlow(t, b)
	if sinks := f.topology.Subtopologies()[0].Sinks; len(sinks) != 1 || sinks[0] != "by-user-repartition" {
		t.Error(sinks)
	}
	if !strings.Contains(f.topology.Describe(), "Source: by-user-repartition-source ") {
		t.Error(f.topology.Describe())
	}
}
