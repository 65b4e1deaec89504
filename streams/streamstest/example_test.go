package streamstest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

// In a test, t stands where this example has nil.
func ExampleNew() {
	b := streams.NewBuilder()
	lines := streams.Stream(b, "lines", streams.With(serde.String, serde.String))
	words := streams.FlatMapValues(lines, strings.Fields, serde.String)
	streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
		Count(streams.Materialized{Name: "counts"}).ToStream().To("counts")
	topology, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}

	d := streamstest.New(nil, topology, streamstest.Config{})
	defer d.Close()
	in := streamstest.Input(d, "lines", serde.String, serde.String)
	out := streamstest.Output(d, "counts", serde.String, serde.Int64)

	in.PipeValue("to be or not to be", time.UnixMilli(1))
	first, _ := out.Read()
	counts := streamstest.Map(out)
	fmt.Println(first.Key, first.Value)
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		fmt.Println(word, counts[word])
	}

	// A store is read through the handle that a processor would use.
	be, _, ok, err := processor.TimestampedKeyValue("counts", serde.String, serde.Int64).In(d).Get("be")
	fmt.Println(be, ok, err)
	// Output:
	// to 1
	// be 2
	// not 1
	// or 1
	// to 2
	// 2 true <nil>
}
