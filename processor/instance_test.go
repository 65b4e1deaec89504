package processor_test

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
	"github.com/tidemark-streams/tidemark/statestore"
)

// add makes a processor out of a function.
func add(t *topology, name string, f func(ctx strCtx, r strRec) error, parents ...string) {
	processor.AddProcessor(t, name, func() strFunc { return f }, parents)
}

func TestForwardGoesDepthFirstInOrderOfAddition(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	mark := func(m string) func(strCtx, strRec) error {
		return func(ctx strCtx, r strRec) error { return ctx.Forward(processor.WithValue(r, r.Value+m)) }
	}
	add(top, "z", mark("z"), "source")
	add(top, "a", mark("a"), "source")
	add(top, "zz", mark("1"), "z")
	sink(top, "sink-z", "z", "z")
	sink(top, "sink-all", "all", "a", "zz")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 7, kafka.Header{Key: "h", Value: []byte("x")}, kafka.Header{Key: "n"})
	r.expect("all k=vz1 @7 h:x n:∅", "z k=vz @7 h:x n:∅", "all k=va @7 h:x n:∅")
}

func TestForwardTo(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "route", func(ctx strCtx, r strRec) error { return ctx.ForwardTo(r.Value, r) }, "source")
	sink(top, "left", "l", "route")
	sink(top, "right", "r", "route")
	r := newRig(t, top)
	r.mustSend("in", "k", "right", 1)
	r.mustSend("in", "k", "left", 2)
	r.expect("r k=right @1", "l k=left @2")
	err := r.send("in", []byte("k"), []byte("up"), 3)
	if want := "processor route has no child up; its children are [left right]"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestForwardChangesTimestampAndHeaders(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "fan", func(ctx strCtx, r strRec) error {
		late := r
		late.Timestamp = r.Timestamp.Add(time.Second)
		late.Headers = append(slices.Clone(r.Headers), kafka.Header{Key: "late", Value: []byte{}})
		return errors.Join(ctx.Forward(late), ctx.Forward(r))
	}, "source")
	sink(top, "sink", "out", "fan")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 5, kafka.Header{Key: "h", Value: []byte("x")})
	r.expect("out k=v @1005 h:x late:", "out k=v @5 h:x")
	if got := r.in.StreamTime(); !got.Equal(time.UnixMilli(5)) {
		t.Errorf("stream time %v is moved by records that are read, not by those that are forwarded", got)
	}
}

func TestNullsArriveAndLeave(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	var seen []string
	add(top, "look", func(ctx strCtx, r strRec) error {
		seen = append(seen, fmt.Sprintf("%v %v", r.HasKey(), r.HasValue()))
		if !r.HasKey() && !r.HasValue() { // assigning makes a value again
			r.Key = "made"
			r = processor.WithValue(r, "")
		}
		return ctx.Forward(r)
	}, "source")
	sink(top, "sink", "out", "look")
	processor.AddSource(top, "pointers", serde.Nullable(serde.String), serde.Bytes, "pin")
	processor.AddSink(top, "pout", "pout", serde.Nullable(serde.String), serde.Bytes, "pointers")
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, top)
	key, value := []byte("k"), []byte("v")
	for _, kv := range [][2][]byte{{key, value}, {nil, value}, {key, nil}, {nil, nil}, {{}, {}}} {
		if err := r.send("in", kv[0], kv[1], 1); err != nil {
			t.Fatal(err)
		}
	}
	r.expect("out k=v @1", "out ∅=v @1", "out k=∅ @1", "out made= @1", "out = @1")
	if got := strings.Join(seen, ","); got != "true true,false true,true false,false false,true true" {
		t.Error(got)
	}
}

func TestNullsOfTypesWithNil(t *testing.T) {
	top := processor.NewTopology()
	processor.AddSource(top, "source", serde.Nullable(serde.String), serde.Bytes, "in")
	processor.AddSink(top, "sink", "out", serde.Nullable(serde.String), serde.Bytes, "source")
	r := newRig(t, top)
	for _, kv := range [][2][]byte{{nil, nil}, {{}, {}}, {[]byte("k"), []byte("v")}} {
		if err := r.send("in", kv[0], kv[1], 1); err != nil {
			t.Fatal(err)
		}
	}
	r.expect("out ∅=∅ @1", "out = @1", "out k=v @1")
}

func TestMetadataAndClocks(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	var got []string
	add(top, "look", func(ctx strCtx, r strRec) error {
		m, ok := ctx.Metadata()
		got = append(got, fmt.Sprintf("%v %v %d %d %v", m, ok, ctx.StreamTime().UnixMilli(), ctx.Now().UnixMilli(), ctx.TaskID()))
		ctx.Commit()
		return nil
	}, "source")
	r := newRig(t, top)
	if !r.in.StreamTime().IsZero() {
		t.Error("there was no record yet")
	}
	r.mustSend("in", "k", "v", 20)
	r.now = r.now.Add(time.Second)
	r.mustSend("in", "k", "v", 10) // late: stream time stays
	want := "{in 3 40} true 20 1000000 0_3,{in 3 41} true 20 1001000 0_3"
	if strings.Join(got, ",") != want || r.commits != 2 {
		t.Errorf("got %v and %d commits, want %s", got, r.commits, want)
	}
}

func TestStreamTimeContinues(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	r := prepare(t, top)
	var err error
	if r.in, err = r.sub.NewInstance(r.env, time.UnixMilli(500)); err != nil {
		t.Fatal(err)
	}
	r.mustSend("in", "k", "v", 100)
	if got := r.in.StreamTime().UnixMilli(); got != 500 {
		t.Error(got)
	}
}

func TestTimestamp(t *testing.T) {
	top := processor.NewTopology()
	processor.AddSource(top, "source", serde.String, serde.String, "in", "other")
	sink(top, "sink", "out", "source")
	r := newRig(t, top)
	err := r.send("in", nil, nil, -5)
	want := "negative timestamp -5 ms; configure a TimestampExtractor that repairs it, or drops it by giving a negative time"
	if !errors.Is(err, processor.ErrNegativeTimestamp) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	r.mustSend("in", "k", "v", 0)
	r.expect("out k=v @0")

	r = prepare(t, top)
	broken := errors.New("no clock")
	r.env.ExtractTimestamp = func(rec *kafka.Record, partitionTime time.Time) (int64, error) {
		switch string(rec.Value) {
		case "drop":
			return -1, nil
		case "fail":
			return 0, broken
		case "none yet":
			if !partitionTime.IsZero() {
				return 0, broken
			}
			return 1, nil
		case "partition time":
			return partitionTime.UnixMilli(), nil
		}
		return rec.Timestamp + 1000, nil
	}
	if r.in, err = r.sub.NewInstance(r.env, time.Time{}); err != nil {
		t.Fatal(err)
	}
	r.mustSend("in", "k", "v", -5)
	r.mustSend("in", "k", "drop", 5)
	r.mustSend("in", "k", "partition time", 5)
	r.mustSend("other", "k", "none yet", 5)
	r.mustSend("other", "k", "partition time", 5)
	r.expect("out k=v @995", "out k=partition time @995", "out k=none yet @1", "out k=partition time @1")
	if err := r.send("in", nil, []byte("fail"), 1); !errors.Is(err, broken) || err.Error() != "extract timestamp: no clock" {
		t.Error(err)
	}
}

func TestSinkRefusesNegativeTimestamp(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "early", func(ctx strCtx, r strRec) error {
		r.Timestamp = time.UnixMilli(-1)
		return ctx.Forward(r)
	}, "source")
	sink(top, "sink", "out", "early")
	r := newRig(t, top)
	err := r.send("in", []byte("k"), []byte("v"), 1)
	want := "output to topic out: negative timestamp -1 ms; give the record a time since 1970 before it is forwarded"
	if !errors.Is(err, processor.ErrNegativeTimestamp) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if r.in.At() != "sink" {
		t.Errorf("it happened at %s", r.in.At())
	}
}

// failing is a serde that fails both ways.
type failing struct{ serde.Serde[string] }

var errSerde = errors.New("no such format")

func (failing) Name() string                          { return "failing" }
func (failing) Append([]byte, string) ([]byte, error) { return nil, errSerde }
func (failing) Decode([]byte) (string, error)         { return "", errSerde }

func TestSerdeErrors(t *testing.T) {
	tests := []struct {
		name       string
		key, value serde.Serde[string] // of the sink
		in         string
		want, at   string
	}{
		{"decode key", serde.String, serde.String, "bad-keys", `key of bad-keys-3 at offset 40, serde "failing": no such format`, "bad-keys"},
		{"decode value", serde.String, serde.String, "bad-values", `value of bad-values-3 at offset 40, serde "failing": no such format`, "bad-values"},
		{"encode key", failing{}, serde.String, "in", `key of out, serde "failing": no such format`, "sink"},
		{"encode value", serde.String, failing{}, "in", `value of out, serde "failing": no such format`, "sink"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			top := processor.NewTopology()
			source(top, "in", "in")
			processor.AddSource(top, "bad-keys", failing{}, serde.String, "bad-keys")
			processor.AddSource(top, "bad-values", serde.String, failing{}, "bad-values")
			processor.AddSink(top, "sink", "out", test.key, test.value, "in", "bad-keys", "bad-values")
			r := newRig(t, top)
			err := r.send(test.in, []byte("k"), []byte("v"), 1)
			var e *serde.Error
			if !errors.As(err, &e) || !errors.Is(err, errSerde) || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if r.in.At() != test.at {
				t.Errorf("it happened at %s", r.in.At())
			}
		})
	}
}

func TestErrorNamesTheNodeWhereItHappened(t *testing.T) {
	broken := errors.New("broken")
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "above", newEcho(), "source")
	add(top, "below", func(ctx strCtx, r strRec) error { return broken }, "above")
	add(top, "careless", func(ctx strCtx, r strRec) error {
		_ = ctx.Forward(r)
		return nil
	}, "source")
	r := newRig(t, top)
	if err := r.send("in", nil, nil, 1); !errors.Is(err, broken) || r.in.At() != "below" {
		t.Errorf("%v at %s", err, r.in.At())
	}
	if err := r.in.Process("other", &kafka.Record{}, 1); err == nil || err.Error() != "topic other is not read by sub-topology 0" {
		t.Error(err)
	}
}

// stages tells of Init and Close.
type stages struct {
	strFunc
	name       string
	log        *[]string
	init, fail error
}

func (s *stages) Init(ctx strCtx) error {
	if _, ok := ctx.Metadata(); ok {
		return errors.New("there is no record in Init")
	}
	*s.log = append(*s.log, "init "+s.name)
	return s.init
}

func (s *stages) Close() error {
	*s.log = append(*s.log, "close "+s.name)
	return s.fail
}

func TestInitAndClose(t *testing.T) {
	noInit, noClose := errors.New("cannot open"), errors.New("cannot close")
	var log []string
	build := func(initFails bool) *topology {
		top := processor.NewTopology()
		source(top, "source", "in")
		for _, name := range []string{"a", "b", "c"} {
			processor.AddProcessor(top, name, func() *stages {
				s := &stages{strFunc: newEcho(), name: name, log: &log, fail: noClose}
				if initFails && name == "b" {
					s.init = noInit
				}
				return s
			}, []string{"source"})
		}
		return top
	}
	r := prepare(t, build(false))
	in, err := r.sub.NewInstance(r.env, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	err = in.Close()
	want := "task 0_3: close processor c: cannot close\ntask 0_3: close processor b: cannot close\ntask 0_3: close processor a: cannot close"
	if !errors.Is(err, noClose) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := strings.Join(log, ", "); got != "init a, init b, init c, close c, close b, close a" {
		t.Error(got)
	}
	log = nil
	r = prepare(t, build(true))
	_, err = r.sub.NewInstance(r.env, time.Time{})
	if !errors.Is(err, noInit) || !strings.HasPrefix(err.Error(), "task 0_3: init processor b: cannot open") {
		t.Error(err)
	}
	if got := strings.Join(log, ", "); got != "init a, init b, close b, close a" {
		t.Error(got)
	}
}

// A panic in Init is an error too, and what was initialised is closed. One in Close does not
// keep the others from being closed.
func TestPanicInInitAndClose(t *testing.T) {
	var log []string
	top := processor.NewTopology()
	source(top, "source", "in")
	for _, name := range []string{"a", "b", "c"} {
		processor.AddProcessor(top, name, func() *panicking { return &panicking{stages{strFunc: newEcho(), name: name, log: &log}} }, []string{"source"})
	}
	r := prepare(t, top)
	in, err := r.sub.NewInstance(r.env, time.Time{})
	if in != nil || err == nil {
		t.Fatalf("instance %v, error %v", in, err)
	}
	for _, word := range []string{"task 0_3", "processor c: panic: init c", "close processor b: panic: close b", "instance_test.go"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
	}
	if got := strings.Join(log, ", "); got != "init a, init b, init c, close c, close b, close a" {
		t.Error(got)
	}
}

// panicking panics in the Init of c and in the Close of b.
type panicking struct{ stages }

func (p *panicking) Init(ctx strCtx) error {
	err := p.stages.Init(ctx)
	if p.name == "c" {
		panic("init c")
	}
	return err
}

func (p *panicking) Close() error {
	err := p.stages.Close()
	if p.name == "b" {
		panic("close b")
	}
	return err
}

// A processor may keep a record for a later punctuation; the memory of a poll is used again.
func TestHeadersOutliveThePoll(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	var kept []strRec
	add(top, "keep", func(ctx strCtx, r strRec) error {
		if kept = append(kept, r); len(kept) < 3 {
			return nil
		}
		for _, r := range kept {
			if err := ctx.Forward(r); err != nil {
				return err
			}
		}
		return nil
	}, "source")
	sink(top, "sink", "out", "keep")
	r := newRig(t, top)
	poll := make([]kafka.Header, 2) // the arena of a kafka.Poll
	for i, value := range []string{"x", "y", "z"} {
		poll[0], poll[1] = kafka.Header{Key: "first", Value: []byte(value)}, kafka.Header{Key: "second"}
		r.mustSend("in", "k", value, int64(i), poll[:2:2]...)
	}
	r.expect("out k=x @0 first:x second:∅", "out k=y @1 first:y second:∅", "out k=z @2 first:z second:∅")
}

func TestStoreThatDoesNotOpenFailsTheInstance(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddProcessor(top, "a", newEcho, []string{"source"}, processor.KeyValue("s", serde.String, serde.Int64))
	r := prepare(t, top)
	broken := errors.New("disk on fire")
	r.env.Stores = brokenStores{err: broken}
	_, err := r.sub.NewInstance(r.env, time.Time{})
	if !errors.Is(err, broken) || err.Error() != "task 0_3: processor a: disk on fire" {
		t.Error(err)
	}
}

// brokenStores open nothing.
type brokenStores struct {
	processor.TaskStores
	err error
}

func (b brokenStores) KeyValue(string) (*statestore.KeyValue, error) { return nil, b.err }

func TestDrop(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	add(top, "drop", func(ctx strCtx, r strRec) error {
		processor.Drop(ctx, "null key")
		return nil
	}, "source")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 1)
	if len(r.drops) != 1 || r.drops[0] != "drop: null key" {
		t.Error(r.drops)
	}
}
