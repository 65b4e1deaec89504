package streams_test

import (
	"fmt"
	"strings"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// Words are counted in a store named counts, and every new count goes to a topic.
func ExampleNewBuilder() {
	b := streams.NewBuilder()
	lines := streams.Stream(b, "lines", streams.With(serde.String, serde.String))
	words := streams.FlatMapValues(lines, strings.Fields, serde.String)
	counts := streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(streams.Materialized{Name: "counts"})
	counts.ToStream().To("counts")

	topology, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(topology.Describe())
	// Output:
	// Topologies:
	//    Sub-topology: 0
	//     Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
	//       --> KSTREAM-FLATMAPVALUES-0000000001
	//     Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
	//       --> KSTREAM-KEY-SELECT-0000000002
	//       <-- KSTREAM-SOURCE-0000000000
	//     Processor: KSTREAM-KEY-SELECT-0000000002 (stores: [])
	//       --> counts-repartition-filter
	//       <-- KSTREAM-FLATMAPVALUES-0000000001
	//     Processor: counts-repartition-filter (stores: [])
	//       --> counts-repartition-sink
	//       <-- KSTREAM-KEY-SELECT-0000000002
	//     Sink: counts-repartition-sink (topic: counts-repartition)
	//       <-- counts-repartition-filter
	//
	//   Sub-topology: 1
	//     Source: counts-repartition-source (topics: [counts-repartition])
	//       --> KSTREAM-AGGREGATE-0000000003
	//     Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])
	//       --> KTABLE-TOSTREAM-0000000007
	//       <-- counts-repartition-source
	//     Processor: KTABLE-TOSTREAM-0000000007 (stores: [])
	//       --> KSTREAM-SINK-0000000008
	//       <-- KSTREAM-AGGREGATE-0000000003
	//     Sink: KSTREAM-SINK-0000000008 (topic: counts)
	//       <-- KTABLE-TOSTREAM-0000000007
}

// A handle declares a store, connects it and opens it; its types cannot be got wrong.
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

// A processor with a store lets the first record of every key through.
func ExampleProcess() {
	b := streams.NewBuilder()
	in := streams.Stream(b, "events", streams.With(serde.String, serde.String))
	streams.Process(in, newDedupe, streams.With(serde.String, serde.String).Named("dedupe"), seen).To("unique")

	topology, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(topology.Describe())
	// Output:
	// Topologies:
	//    Sub-topology: 0
	//     Source: KSTREAM-SOURCE-0000000000 (topics: [events])
	//       --> dedupe
	//     Processor: dedupe (stores: [seen])
	//       --> KSTREAM-SINK-0000000001
	//       <-- KSTREAM-SOURCE-0000000000
	//     Sink: KSTREAM-SINK-0000000001 (topic: unique)
	//       <-- dedupe
}

// Each record goes to the first branch that takes it.
func ExampleKStream_Split() {
	b := streams.NewBuilder()
	orders := streams.Stream(b, "orders", streams.With(serde.String, serde.Int64))
	sizes := orders.Split("by-size-")
	sizes.Branch(func(_ string, cents int64) bool { return cents >= 100_00 }, "large").To("large-orders")
	sizes.DefaultBranch("rest").To("small-orders")

	topology, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sub := range topology.Subtopologies() {
		fmt.Println(sub.Sources, "->", sub.Sinks)
	}
	// Output: [orders] -> [large-orders small-orders]
}

// Build reports everything that is wrong at once.
func ExampleBuilder_Build() {
	b := streams.NewBuilder()
	in := streams.Stream(b, "in", streams.With(serde.String, serde.String))
	in.GroupByKey().Count(streams.Materialized{Name: "counts"})
	in.GroupByKey().Count(streams.Materialized{Name: "counts"})
	in.To("a topic", "out/put")

	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// topology: store counts is the store of two operators, KSTREAM-AGGREGATE-0000000001 and KSTREAM-AGGREGATE-0000000002; give one of them another name
	// name of a KSTREAM-SINK: "out/put" is not a name: only letters, digits, '.', '_' and '-' may be used
	// sink out/put: topic "a topic" is not a name: only letters, digits, '.', '_' and '-' may be used
}
