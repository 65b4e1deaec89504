package streams

import (
	"fmt"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// The table "Nulls" of docs/ARCHITECTURE.md, row by row. Every case is sent three records:
// one with a null key, one with a null value, and one with both.

// noNil are the rows for types without nil. No function may be called with a null value; a null
// key is given as the zero value, so each is called once, if at all.
var noNil = []struct {
	operator       string
	add            func(in *KStream[string, string], called func())
	outputs, drops []string
	calls          int
}{
	{"Filter", func(in *KStream[string, string], called func()) {
		in.Filter(func(k, v string) bool { called(); return false }, "n").To("out")
	}, []string{"out k=∅ @2", "out ∅=∅ @3"}, nil, 1},
	{"FilterNot", func(in *KStream[string, string], called func()) {
		in.FilterNot(func(k, v string) bool { called(); return true }, "n").To("out")
	}, []string{"out k=∅ @2", "out ∅=∅ @3"}, nil, 1},
	{"Peek", func(in *KStream[string, string], called func()) {
		in.Peek(func(k, v string) { called() }, "n").To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 1},
	{"Foreach", func(in *KStream[string, string], called func()) {
		in.Foreach(func(k, v string) { called() }, "n")
	}, nil, []string{"n: null value", "n: null value"}, 1},
	{"MapValues", func(in *KStream[string, string], called func()) {
		MapValues(in, func(v string) string {
			if v == "" {
				called()
			}
			return v + v
		}, serde.String, "n").To("out")
	}, []string{"out ∅=vv @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 0},
	{"MapValuesWithKey", func(in *KStream[string, string], called func()) {
		MapValuesWithKey(in, func(k, v string) string { called(); return k + v }, serde.String, "n").To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 1},
	{"FlatMapValues", func(in *KStream[string, string], called func()) {
		FlatMapValues(in, func(v string) []string {
			if v == "" {
				called()
			}
			return []string{v, v}
		}, serde.String, "n").To("out")
	}, []string{"out ∅=v @1", "out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 0},
	{"Map", func(in *KStream[string, string], called func()) {
		Map(in, func(k, v string) (string, string) { called(); return k, v }, texts.Named("n")).To("out")
	}, []string{"out =v @1"}, []string{"n: null value", "n: null value"}, 1},
	{"FlatMap", func(in *KStream[string, string], called func()) {
		FlatMap(in, func(k, v string) []KeyValue[string, string] { called(); return nil }, texts.Named("n")).To("out")
	}, nil, []string{"n: null value", "n: null value"}, 1},
	{"SelectKey", func(in *KStream[string, string], called func()) {
		SelectKey(in, func(k, v string) string { called(); return v }, serde.String, "n").To("out")
	}, []string{"out v=v @1"}, []string{"n: null value", "n: null value"}, 1},
	{"GroupBy", func(in *KStream[string, string], called func()) {
		GroupBy(in, func(k, v string) string { called(); return v }, serde.String, "n").Count(Materialized{}).ToStream().To("out")
	}, []string{"out v=1 @1"}, []string{"n: null value", "n: null value"}, 1},
	{"Branch", func(in *KStream[string, string], called func()) {
		s := in.Split()
		s.Branch(func(k, v string) bool { called(); return true }).To("branch")
		s.DefaultBranch().To("out")
	}, []string{"branch ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 1},
	{"Branch without a default", func(in *KStream[string, string], called func()) {
		in.Split().Branch(func(k, v string) bool { called(); return true }).To("branch")
	}, []string{"branch ∅=v @1"}, nil, 1},
	{"Merge, To", func(in *KStream[string, string], called func()) {
		in.Merge(Stream(in.b, "other", texts)).To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 0},
	{"Repartition", func(in *KStream[string, string], called func()) {
		in.Repartition(Repartitioned{}).To("out")
	}, []string{"out k=∅ @2"}, nil, 0},
	{"Count", func(in *KStream[string, string], called func()) {
		in.GroupByKey().Count(Materialized{}, "n").ToStream().To("out")
	}, nil, []string{"n: null key", "n: null value", "n: null key"}, 0},
	{"Reduce", func(in *KStream[string, string], called func()) {
		in.GroupByKey().Reduce(func(row, v string) string { called(); return row + v }, Materialized{}, "n").ToStream().To("out")
	}, nil, []string{"n: null key", "n: null value", "n: null key"}, 0},
	{"Aggregate", func(in *KStream[string, string], called func()) {
		Aggregate(in.GroupByKey(), func() string { called(); return "" }, func(_, v, row string) string { called(); return row + v }, serde.String, Materialized{}, "n").ToStream().To("out")
	}, nil, []string{"n: null key", "n: null value", "n: null key"}, 0},
	{"ToTable", func(in *KStream[string, string], called func()) {
		in.ToTable(Materialized{}, "n").ToStream().To("out")
	}, []string{"out k=∅ @2"}, []string{"n: null key", "n: null key"}, 0},
	{"Filter of a table", func(in *KStream[string, string], called func()) {
		in.ToTable(Materialized{}, "n").Filter(func(k, v string) bool { called(); return true }).ToStream().To("out")
	}, []string{"out k=∅ @2"}, []string{"n: null key", "n: null key"}, 0},
	{"MapTableValues", func(in *KStream[string, string], called func()) {
		MapTableValues(in.ToTable(Materialized{}, "n"), func(v string) string { called(); return v }, serde.String).ToStream().To("out")
	}, []string{"out k=∅ @2"}, []string{"n: null key", "n: null key"}, 0},
	{"GroupTable", func(in *KStream[string, string], called func()) {
		GroupTable(in.ToTable(Materialized{}, "n"), func(k, v string) (string, string) { called(); return k, v }, texts).Count(Materialized{}).ToStream().To("out")
	}, nil, []string{"n: null key", "n: null key"}, 0},
	{"JoinTable", func(in *KStream[string, string], called func()) {
		JoinTable(in, Table(in.b, "table", texts, Materialized{}), func(k, v, row string) string { called(); return v }, serde.String, "n").To("out")
	}, nil, []string{"n: null key", "n: null value", "n: null value"}, 0},
	{"LeftJoinTable", func(in *KStream[string, string], called func()) {
		LeftJoinTable(in, Table(in.b, "table", texts, Materialized{}), func(k, v, row string, found bool) string { called(); return fmt.Sprint(k, v, row, found) }, serde.String, "n").To("out")
	}, []string{"out ∅=vfalse @1"}, []string{"n: null value", "n: null value"}, 1},
	{"ProcessValues", func(in *KStream[string, string], called func()) {
		ProcessValues(in, newEcho[string, string], texts).To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 0},
	{"Process", func(in *KStream[string, string], called func()) {
		Process(in, newEcho[string, string], texts).To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil, 0},
}

func newEcho[K, V any]() processor.Func[K, V, K, V] {
	return func(ctx processor.Context[K, V], r processor.Record[K, V]) error { return ctx.Forward(r) }
}

func TestNullsOfTypesWithoutNil(t *testing.T) {
	for _, test := range noNil {
		t.Run(test.operator, func(t *testing.T) {
			b := NewBuilder()
			called := 0
			test.add(Stream(b, "in", texts), func() { called++ })
			sendNulls(newFlow(t, b), test.outputs, test.drops)
			if called != test.calls {
				t.Errorf("the function was called %d times, want %d", called, test.calls)
			}
		})
	}
}

func sendNulls(f *flow, outputs, drops []string) {
	f.t.Helper()
	f.send("in", "∅", "v", 1)
	f.send("in", "k", "∅", 2)
	f.send("in", "∅", "∅", 3)
	f.expect(outputs...)
	f.expectDrops(drops...)
}

type nilable = KStream[[]byte, *string]

var bytesAndPointers = With(serde.Bytes, serde.Nullable(serde.String))

// swap exchanges key and value; null is null on both sides.
func swap(k []byte, v *string) ([]byte, *string) {
	var key []byte
	if v != nil {
		key = []byte(*v)
	}
	if k == nil {
		return key, nil
	}
	value := string(k)
	return key, &value
}

func swappedKey(k []byte, v *string) []byte {
	key, _ := swap(k, v)
	return key
}

// withNil are the rows for types with nil: functions are called with nil, three times.
var withNil = []struct {
	operator       string
	add            func(in *nilable, called func())
	outputs, drops []string
}{
	{"Filter", func(in *nilable, called func()) {
		in.Filter(func(k []byte, v *string) bool { called(); return v == nil }).To("out")
	}, []string{"out k=∅ @2", "out ∅=∅ @3"}, nil},
	{"FilterNot", func(in *nilable, called func()) {
		in.FilterNot(func(k []byte, v *string) bool { called(); return k == nil }).To("out")
	}, []string{"out k=∅ @2"}, nil},
	{"Peek", func(in *nilable, called func()) {
		in.Peek(func(k []byte, v *string) { called() }).To("out")
	}, []string{"out ∅=v @1", "out k=∅ @2", "out ∅=∅ @3"}, nil},
	{"Foreach", func(in *nilable, called func()) { in.Foreach(func(k []byte, v *string) { called() }) }, nil, nil},
	{"MapValues", func(in *nilable, called func()) {
		MapValues(in, func(v *string) []byte {
			called()
			if v == nil {
				return []byte("made")
			}
			return nil
		}, serde.Bytes).To("out")
	}, []string{"out ∅=∅ @1", "out k=made @2", "out ∅=made @3"}, nil},
	{"FlatMapValues", func(in *nilable, called func()) {
		FlatMapValues(in, func(v *string) []*string {
			called()
			if v == nil {
				return nil
			}
			return []*string{v, nil}
		}, serde.Nullable(serde.String)).To("out")
	}, []string{"out ∅=v @1", "out ∅=∅ @1"}, nil},
	{"Map", func(in *nilable, called func()) {
		Map(in, func(k []byte, v *string) ([]byte, *string) { called(); return swap(k, v) }, bytesAndPointers).To("out")
	}, []string{"out v=∅ @1", "out ∅=k @2", "out ∅=∅ @3"}, nil},
	{"FlatMap", func(in *nilable, called func()) {
		FlatMap(in, func(k []byte, v *string) []KeyValue[[]byte, *string] {
			called()
			key, value := swap(k, v)
			return []KeyValue[[]byte, *string]{{key, value}}
		}, bytesAndPointers).To("out")
	}, []string{"out v=∅ @1", "out ∅=k @2", "out ∅=∅ @3"}, nil},
	{"SelectKey", func(in *nilable, called func()) {
		SelectKey(in, func(k []byte, v *string) []byte { called(); return swappedKey(k, v) }, serde.Bytes).To("out")
	}, []string{"out v=v @1", "out ∅=∅ @2", "out ∅=∅ @3"}, nil},
	{"GroupBy", func(in *nilable, called func()) { // what gets a nil key is left out before the topic, silently
		GroupBy(in, func(k []byte, v *string) []byte { called(); return swappedKey(k, v) }, serde.Bytes).Count(Materialized{}).ToStream().To("out")
	}, []string{"out v=1 @1"}, nil},
	{"Branch", func(in *nilable, called func()) {
		s := in.Split()
		s.Branch(func(k []byte, v *string) bool { called(); return k == nil }).To("branch")
		s.DefaultBranch().To("out")
	}, []string{"branch ∅=v @1", "out k=∅ @2", "branch ∅=∅ @3"}, nil},
}

func TestNullsOfTypesWithNil(t *testing.T) {
	for _, test := range withNil {
		t.Run(test.operator, func(t *testing.T) {
			b := NewBuilder()
			called := 0
			test.add(Stream(b, "in", bytesAndPointers), func() { called++ })
			sendNulls(newFlow(t, b), test.outputs, test.drops)
			if called != 3 {
				t.Errorf("the function was called %d times", called)
			}
		})
	}
	t.Run("Count", func(t *testing.T) {
		b := NewBuilder()
		Stream(b, "in", bytesAndPointers).GroupByKey().Count(Materialized{}, "n").ToStream().To("out")
		sendNulls(newFlow(t, b), nil, []string{"n: null key", "n: null value", "n: null key"})
	})
}

// TestWordsOfLinesWithoutKeys: a topic without keys needs no special key type.
func TestWordsOfLinesWithoutKeys(t *testing.T) {
	b := NewBuilder()
	lines := Stream(b, "lines", texts)
	GroupBy(lines, func(_, line string) string { return line }, serde.String).Count(Materialized{}).ToStream().To("out")
	f := newFlow(t, b)
	f.send("lines", "∅", "a", 1)
	f.send("lines", "∅", "a", 2)
	f.expect("out a=1 @1", "out a=2 @2")
	f.expectDrops()
}

// TestZeroValueThatIsNotNull: the empty string is a value, also behind an operator that got a
// null.
func TestZeroValueThatIsNotNull(t *testing.T) {
	b := NewBuilder()
	in := Stream(b, "in", bytesAndPointers)
	lengths := MapValues(in, func(v *string) string {
		if v == nil {
			return ""
		}
		return *v
	}, serde.String)
	SelectKey(lengths, func(k []byte, v string) string { return v }, serde.String).To("out")
	sendNulls(newFlow(t, b), []string{"out v=v @1", "out = @2", "out = @3"}, nil)
}
