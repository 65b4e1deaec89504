package streamstest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

// An aggregator may change its row in place: what is sent on as the old row is the old one all the same.
func TestAggregatorChangesItsRow(t *testing.T) {
	b := streams.NewBuilder()
	type row = map[string]int64
	sums := serde.JSON[row]()
	empty := func() row { return row{} }
	into := func(sign int64) func(string, row, row) row {
		return func(_ string, v, sum row) row {
			for k, n := range v {
				sum[k] += sign * n
			}
			return sum
		}
	}
	counts := streams.Aggregate(streams.Stream(b, "in", streams.With(serde.String, serde.String)).GroupByKey(), empty, func(_, v string, r row) row {
		r[v]++
		return r
	}, sums, streams.Materialized{Name: "counts"})
	group := func(_ string, v row) (string, row) { return "all", v }
	all := streams.AggregateTable(streams.GroupTable(counts, group, streams.With(serde.String, sums)), empty, into(1), into(-1), sums, streams.Materialized{Name: "all"})
	twice := streams.AggregateTable(streams.GroupTable(all, group, streams.With(serde.String, sums)), empty, into(1), into(-1), sums, streams.Materialized{Name: "twice"})
	all.ToStream().To("all")
	twice.ToStream().To("twice")
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := streamstest.New(t, topology, streamstest.Config{})
	in := streamstest.Input(d, "in", serde.String, serde.String)
	for i, kv := range [][2]string{{"a", "x"}, {"b", "x"}, {"a", "x"}, {"a", "y"}, {"b", "x"}} {
		in.Pipe(kv[0], kv[1], at(int64(1000+i)))
	}
	want := row{"x": 4, "y": 1}
	for _, topic := range []string{"all", "twice"} {
		got := streamstest.Map(streamstest.Output(d, topic, serde.String, sums))
		if diff := cmp.Diff(want, got["all"]); diff != "" {
			t.Errorf("%s: -want +got\n%s", topic, diff)
		}
	}
}
