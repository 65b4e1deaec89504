package streams

import (
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// TestRecordsDoNotAllocate runs records whose serdes allocate nothing through the operators
// of a word count, and a few more: what is left is what the framework costs.
func TestRecordsDoNotAllocate(t *testing.T) {
	numbers := With(serde.Int64, serde.Int64)
	tests := []struct {
		name  string
		build func(in *KStream[int64, int64])
		topic string // that records are sent to
	}{
		{"flatMapValues, groupBy", func(in *KStream[int64, int64]) {
			two := []int64{1, 2}
			words := FlatMapValues(in, func(int64) []int64 { return two }, serde.Int64)
			GroupBy(words, func(_, v int64) int64 { return v }, serde.Int64).Count(Materialized{Name: "counts"}).ToStream().To("out")
		}, "in"},
		{"count", func(in *KStream[int64, int64]) {
			GroupBy(in, func(_, v int64) int64 { return v }, serde.Int64).Count(Materialized{Name: "counts"}).ToStream().To("out")
		}, "counts-repartition"},
		{"stateless", func(in *KStream[int64, int64]) {
			kept := in.Filter(func(k, v int64) bool { return true }).Peek(func(k, v int64) {})
			mapped := Map(MapValues(kept, func(v int64) int64 { return v + 1 }, serde.Int64), func(k, v int64) (int64, int64) { return v, k }, numbers)
			s := mapped.Split()
			s.Branch(func(k, v int64) bool { return false })
			s.DefaultBranch().To("out")
		}, "in"},
		{"process with a store", func(in *KStream[int64, int64]) {
			store := processor.KeyValue("store", serde.Int64, serde.Int64)
			newSum := func() processor.Func[int64, int64, int64, int64] {
				return func(ctx processor.Context[int64, int64], r processor.Record[int64, int64]) error {
					s := store.In(ctx)
					n, _, err := s.Get(r.Key)
					if err != nil {
						return err
					}
					if err := s.Put(r.Key, n+r.Value); err != nil {
						return err
					}
					return ctx.Forward(processor.WithValue(r, n))
				}
			}
			Process(in, newSum, numbers, store).To("out")
		}, "in"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, sent := newSilentFlow(t, test.build)
			for i, sub := range f.topology.Subtopologies() {
				for _, s := range sub.Sources {
					if s != test.topic {
						continue
					}
					r := &kafka.Record{Topic: s, Key: make([]byte, 8), Value: make([]byte, 8), Timestamp: 5}
					run := func() {
						if err := f.instances[i].Process(s, r, 5); err != nil {
							t.Fatal(err)
						}
					}
					run() // buffers grow once
					if n := testing.AllocsPerRun(1000, run); n > 0 {
						t.Errorf("%v allocations a record", n)
					}
				}
			}
			if *sent < 1000 {
				t.Errorf("only %d records came out", *sent)
			}
		})
	}
}

// newSilentFlow is a flow that only counts what goes out.
func newSilentFlow(t *testing.T, build func(in *KStream[int64, int64])) (f *flow, sent *int) {
	t.Helper()
	b := NewBuilder()
	build(Stream(b, "in", With(serde.Int64, serde.Int64)))
	sent = new(int)
	f = newFlow(t, b)
	f.silent = sent
	return f, sent
}

func BenchmarkWordCountOperators(b *testing.B) {
	builder := NewBuilder()
	in := Stream(builder, "in", With(serde.Int64, serde.Int64))
	GroupBy(MapValues(in, func(v int64) int64 { return v }, serde.Int64), func(_, v int64) int64 { return v }, serde.Int64).Count(Materialized{Name: "counts"}).ToStream().To("out")
	sent := 0
	f := newFlow(b, builder)
	f.silent = &sent
	b.ReportAllocs()
	for _, topic := range []string{"in", "counts-repartition"} {
		b.Run(topic, func(b *testing.B) {
			i := 0
			if topic != "in" {
				i = 1
			}
			r := &kafka.Record{Topic: topic, Key: make([]byte, 8), Value: make([]byte, 8)}
			for b.Loop() {
				if err := f.instances[i].Process(topic, r, 5); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
