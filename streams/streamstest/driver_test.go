package streamstest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

type (
	ctx    = processor.Context[string, string]
	rec    = processor.Record[string, string]
	onText = processor.Func[string, string, string, string]
)

var (
	texts = streams.With(serde.String, serde.String)
	seen  = processor.KeyValue("seen", serde.String, serde.String)
)

// process builds a topology of one processor between the topics in and out.
func process(t *testing.T, f onText, stores ...processor.StoreDef) *streams.Topology {
	t.Helper()
	return build(t, func(b *streams.Builder) {
		in := streams.StreamTopics(b, []string{"in", "in2"}, texts)
		streams.Process(in, func() onText { return f }, texts.Named("work"), stores...).To("out")
	})
}

func build(t *testing.T, program func(b *streams.Builder)) *streams.Topology {
	t.Helper()
	b := streams.NewBuilder()
	program(b)
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func forward(c ctx, r rec) error { return c.Forward(r) }

func at(ms int64) time.Time { return time.UnixMilli(ms) }

type topics struct {
	*streamstest.Driver
	in, in2 *streamstest.InputTopic[string, string]
	out     *streamstest.OutputTopic[string, string]
}

func drive(t streamstest.TB, topology *streams.Topology, cfg streamstest.Config) topics {
	d := streamstest.New(t, topology, cfg)
	return topics{d, streamstest.Input(d, "in", serde.String, serde.String), streamstest.Input(d, "in2", serde.String, serde.String), streamstest.Output(d, "out", serde.String, serde.String)}
}

// expect compares all outputs that wait.
func (d topics) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range d.out.ReadAll() {
		got = append(got, show(r))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func show(r rec) string {
	null := func(s string, ok bool) string {
		if !ok {
			return "null"
		}
		return s
	}
	s := fmt.Sprintf("%s=%s@%d", null(r.Key, r.HasKey()), null(r.Value, r.HasValue()), r.Timestamp.UnixMilli())
	for _, h := range r.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, h.Value)
	}
	return s
}

func TestNullsAndHeaders(t *testing.T) {
	d := drive(t, process(t, forward), streamstest.Config{})
	d.in.Pipe("k", "v", at(1), kafka.Header{Key: "h", Value: []byte("1")}, kafka.Header{Key: "h", Value: []byte("2")})
	d.in.Pipe("", "", at(2))
	d.in.PipeValue("v", at(3))
	d.in.PipeNull("k", at(4))
	if d.out.Len() != 4 || d.out.IsEmpty() {
		t.Errorf("%d records wait", d.out.Len())
	}
	d.expect(t, "k=v@1 h:1 h:2", "=@2", "null=v@3", "k=null@4")
	if r, ok := d.out.Read(); ok || !d.out.IsEmpty() {
		t.Error(r)
	}
}

func TestMapIsATable(t *testing.T) {
	d := drive(t, process(t, forward), streamstest.Config{})
	d.in.Pipe("a", "1", at(1))
	d.in.Pipe("b", "1", at(1))
	d.in.Pipe("a", "2", at(0))
	d.in.PipeNull("b", at(2))
	d.in.PipeValue("no row", at(2))
	if got := streamstest.Map(d.out); len(got) != 1 || got["a"] != "2" {
		t.Error(got)
	}
}

func TestBatchIsTakenByTimestamp(t *testing.T) {
	d := drive(t, process(t, forward), streamstest.Config{})
	d.Batch(func() {
		d.in.Pipe("a", "1", at(10))
		d.in.Pipe("a", "2", at(5))
		d.in2.PipeRecords(rec{Key: "b", Value: "1", Timestamp: at(7)}, rec{Key: "b", Value: "2", Timestamp: at(20)})
		if !d.out.IsEmpty() {
			t.Error("a batch was processed before it was complete")
		}
	})
	// Within a topic the order is its own; 2 waits behind 1.
	d.expect(t, "b=1@7", "a=1@10", "a=2@5", "b=2@20")
	d.in.PipeRecords(rec{Key: "a", Value: "1", Timestamp: at(10)}, rec{Key: "a", Value: "2", Timestamp: at(5)})
	d.expect(t, "a=1@10", "a=2@5")
}

// TestTopicsThatComeBack: internal topics, and a topic of the user's that is written and read.
func TestTopicsThatComeBack(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		streams.SelectKey(streams.Stream(b, "in", texts), func(_, v string) string { return v }, serde.String).
			Repartition(streams.Repartitioned{Name: "by-value"}).To("between")
		where := func() onText {
			return func(c ctx, r rec) error {
				m, ok := c.Metadata()
				r.Value = fmt.Sprint(m.Topic, m.Partition, m.Offset, ok, c.TaskID())
				return c.Forward(r)
			}
		}
		streams.Process(streams.Stream(b, "between", texts), where, texts).To("out")
	})
	d := streamstest.New(t, topology, streamstest.Config{AppID: "shop"})
	in := streamstest.Input(d, "in", serde.String, serde.String)
	in.Pipe("", "a", at(1))
	in.Pipe("", "b", at(2))
	var got []string
	for _, topic := range []string{"by-value-repartition", "between", "out"} {
		for _, r := range streamstest.Output(d, topic, serde.String, serde.String).ReadAll() {
			got = append(got, topic+" "+show(r))
		}
	}
	want := []string{"by-value-repartition a=a@1", "by-value-repartition b=b@2", "between a=a@1", "between b=b@2", "out a=between0 0 true 0_0@1", "out b=between0 1 true 0_0@2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	c := d.Committed()
	if c.Positions["by-value-repartition"] != 2 || c.Positions["in"] != 2 || c.Positions["between"] != 2 || !c.StreamTime.Equal(at(2)) {
		t.Error(c)
	}
}

// ticking forwards the time of every punctuation.
type ticking struct{ by processor.PunctuationType }

func (p ticking) Init(c ctx) error {
	c.Schedule(10*time.Millisecond, p.by, func(now time.Time) error {
		return c.Forward(rec{Key: "tick", Timestamp: now})
	})
	return nil
}

func (ticking) Process(c ctx, r rec) error { return c.Forward(r) }

func TestWallClock(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		streams.Process(streams.StreamTopics(b, []string{"in", "in2"}, texts), func() ticking { return ticking{processor.WallClockTime} }, texts).To("out")
	})
	d := drive(t, topology, streamstest.Config{Start: at(1003)})
	d.Advance(9 * time.Millisecond)
	d.in.Pipe("k", "v", at(5000))
	d.expect(t, "k=v@5000")
	d.Advance(time.Millisecond)
	d.expect(t, "tick=@1013")
	d.Advance(25 * time.Millisecond) // past 1023 and 1033: one call
	d.expect(t, "tick=@1038")
	d.Advance(5 * time.Millisecond)
	d.expect(t, "tick=@1043")
	if !d.Now().Equal(at(1043)) || !d.StreamTime().Equal(at(5000)) {
		t.Error(d.Now(), d.StreamTime())
	}
	if err := d.Try(func() { d.Advance(-1) }); err == nil {
		t.Error("the clock went back")
	}
}

func TestStreamTimePunctuationsRunBehindTheRecord(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		streams.Process(streams.StreamTopics(b, []string{"in", "in2"}, texts), func() ticking { return ticking{processor.StreamTime} }, texts).To("out")
	})
	d := drive(t, topology, streamstest.Config{})
	d.Batch(func() {
		d.in.Pipe("k", "1", at(12))
		d.in.Pipe("k", "2", at(25))
	})
	d.expect(t, "k=1@12", "tick=@12", "k=2@25", "tick=@25")
}

func TestDropped(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		streams.Stream(b, "in", texts).GroupByKey().Count(streams.Materialized{Name: "counts"}, "count")
	})
	d := streamstest.New(t, topology, streamstest.Config{TimestampExtractor: func(r *kafka.Record, partitionTime time.Time) (time.Time, error) {
		if r.Timestamp == 99 {
			return partitionTime, nil
		}
		return time.UnixMilli(r.Timestamp), nil
	}})
	in := streamstest.Input(d, "in", serde.String, serde.String)
	in.PipeValue("no key", at(7))
	in.PipeNull("k", at(5))
	in.PipeNull("k", at(5))
	in.Pipe("k", "v", at(-1))
	in.Pipe("k", "v", at(99))
	want := map[streamstest.Dropped]int{{Node: "count", Reason: "null key"}: 1, {Node: "count", Reason: "null value"}: 2, {Node: "in", Reason: "negative timestamp"}: 1}
	got := d.DroppedBy()
	if d.Dropped() != 4 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d: %v", d.Dropped(), got)
	}
	row, ts, ok, err := processor.TimestampedKeyValue("counts", serde.String, serde.Int64).In(d).Get("k")
	if row != 1 || !ts.Equal(at(7)) || !ok || err != nil {
		t.Error(row, ts, ok, err)
	}
}

func TestStores(t *testing.T) {
	d := drive(t, process(t, func(c ctx, r rec) error {
		s := seen.In(c)
		had, _, err := s.Get(r.Key)
		if err != nil {
			return err
		}
		if err := s.Put(r.Key, had+r.Value); err != nil {
			return err
		}
		r.Value = had
		return c.Forward(r)
	}, seen), streamstest.Config{})
	if err := seen.In(d).Put("k", "before "); err != nil {
		t.Fatal(err)
	}
	d.in.Pipe("k", "1", at(1))
	d.expect(t, "k=before @1")
	if v, ok, err := seen.In(d).Get("k"); v != "before 1" || !ok || err != nil {
		t.Error(v, ok, err)
	}
	_, _, err := processor.KeyValue("other", serde.String, serde.String).In(d).Get("k")
	if !errors.Is(err, processor.ErrNotConnected) {
		t.Error(err)
	}
}

func TestErrorsOfUserCode(t *testing.T) {
	boom := errors.New("boom")
	topology := process(t, func(c ctx, r rec) error {
		if err := seen.In(c).Put(r.Key, r.Value); err != nil {
			return err
		}
		if err := c.Forward(r); err != nil {
			return err
		}
		switch r.Value {
		case "fail":
			return boom
		case "panic":
			panic("oh no")
		}
		return nil
	}, seen)
	for _, how := range []string{"fail", "panic"} {
		d := drive(t, topology, streamstest.Config{})
		d.in.Pipe("k", "fine", at(1))
		err := d.Try(func() { d.in.Pipe("k", how, at(2)) })
		words := []string{"in-0@1", "node work", map[string]string{"fail": "boom", "panic": "oh no"}[how]}
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v: no %q", err, w)
			}
		}
		if how == "fail" && !errors.Is(err, boom) {
			t.Error(err)
		}
		// D2 and D3.
		d.expect(t, "k=fine@1")
		if v, _, err := seen.In(d).Get("k"); v != "fine" || err != nil {
			t.Error(v, err)
		}
		if again := d.Try(func() { d.in.Pipe("k", "fine", at(3)) }); again == nil || again.Error() != err.Error() {
			t.Error(again)
		}
		if again := d.Try(func() { d.Advance(time.Second) }); again == nil {
			t.Error("a failed driver goes on")
		}
	}
}

func TestManualCommit(t *testing.T) {
	d := drive(t, process(t, func(c ctx, r rec) error {
		if r.Value == "commit" {
			c.Commit()
		}
		return c.Forward(r)
	}), streamstest.Config{ManualCommit: true})
	position := func(want int64) {
		t.Helper()
		if c := d.Committed(); c.Positions["in"] != want {
			t.Errorf("committed %+v, want position %d", c, want)
		}
	}
	d.in.Pipe("k", "1", at(1))
	d.in.Pipe("k", "2", at(2))
	d.expect(t, "k=1@1", "k=2@2")
	position(0)
	d.Commit()
	position(2)
	d.in.Pipe("k", "commit", at(3))
	position(3)
	if c := d.Committed(); c.Commits != 2 || !c.StreamTime.Equal(at(3)) {
		t.Errorf("%+v", c)
	}
}

// fakeTB notes what fails, as a test that has failed goes on to its end.
type fakeTB struct {
	failed   []string
	cleanups []func()
}

func (f *fakeTB) Helper()            {}
func (f *fakeTB) Cleanup(run func()) { f.cleanups = append(f.cleanups, run) }
func (f *fakeTB) Fatal(args ...any)  { f.failed = append(f.failed, fmt.Sprint(args...)) }

type closing struct {
	onText
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return errors.New("close failed")
}

func TestFailuresReachTheTest(t *testing.T) {
	closed := 0
	topology := build(t, func(b *streams.Builder) {
		streams.Process(streams.StreamTopics(b, []string{"in", "in2"}, texts), func() closing { return closing{forward, &closed} }, texts.Named("work")).To("out")
	})
	f := &fakeTB{}
	d := drive(f, topology, streamstest.Config{})
	d.in.Pipe("k", "v", at(-1))
	streamstest.Input(d.Driver, "nowhere", serde.String, serde.String)
	streamstest.Output(d.Driver, "in", serde.String, serde.String)
	f.cleanups[0]()
	d.Close() // again
	d.in.Pipe("k", "v", at(1))
	want := []string{"negative timestamp -1 ms", "does not read topic nowhere, but in, in2", "does not write topic in, but out", "close processor work: close failed", "closed"}
	if len(f.failed) != len(want) || closed != 1 {
		t.Fatalf("closed %d times, %q", closed, f.failed)
	}
	for i, w := range want {
		if !strings.Contains(f.failed[i], w) {
			t.Errorf("%q does not contain %q", f.failed[i], w)
		}
	}
}
