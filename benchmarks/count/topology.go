package main

import (
	"strconv"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// topology counts the records of in by key; each gives a new count to out.
func topology(in, out string) (*streams.Topology, error) {
	b := streams.NewBuilder()
	records := streams.Stream(b, in, streams.With(serde.String, serde.Bytes))
	counts := records.GroupByKey().Count(streams.Materialized{Name: "counts"})
	streams.MapValues(counts.ToStream(), func(n int64) string { return strconv.FormatInt(n, 10) }, serde.String).To(out)
	return b.Build()
}
