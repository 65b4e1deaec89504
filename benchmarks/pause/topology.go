package main

import (
	"strconv"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// topology is that of command count, with a look at each record.
func topology(in, out string, gaps *watch.Gaps) (*streams.Topology, error) {
	b := streams.NewBuilder()
	records := streams.Stream(b, in, streams.With(serde.String, serde.Bytes)).Peek(func(string, []byte) { gaps.Record() })
	counts := records.GroupByKey().Count(streams.Materialized{Name: "counts"})
	streams.MapValues(counts.ToStream(), func(n int64) string { return strconv.FormatInt(n, 10) }, serde.String).To(out)
	return b.Build()
}
