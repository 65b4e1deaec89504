package streams

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

func TestBuildReportsEverythingAtOnce(t *testing.T) {
	is := func(k, v string) bool { return true }
	tests := []struct {
		name  string
		build func(b *Builder)
		want  []string
	}{
		{"empty", func(b *Builder) {}, []string{"it is empty: it has no source"}},
		{"no topics", func(b *Builder) { StreamTopics(b, nil, texts) }, []string{"source KSTREAM-SOURCE-0000000000 reads no topic"}},
		{"nil functions", func(b *Builder) {
			in := Stream(b, "in", texts)
			in.Filter(nil)
			in.Foreach(nil, "each")
			MapValues[string, string, string](in, nil, serde.String)
			in.Split().Branch(nil)
			GroupBy[string, string, string](in, nil, serde.String)
		}, []string{
			"KSTREAM-FILTER-0000000001: its function is nil",
			"each: its function is nil",
			"KSTREAM-MAPVALUES-0000000003: its function is nil",
			"KSTREAM-BRANCH-00000000041: its function is nil",
			"KSTREAM-KEY-SELECT-0000000006: its function is nil"}},
		{"nil serdes", func(b *Builder) {
			in := Stream(b, "in", With[string, string](serde.String, nil))
			GroupBy(in, func(k, v string) string { return v }, nil).Count(Materialized{})
			MapValues(in, strings.ToLower, nil, "lower").To("out")
		}, []string{
			"KSTREAM-AGGREGATE-0000000003: the serde of its keys or rows is nil",
			"source KSTREAM-SOURCE-0000000000: the serde of its values is nil",
			"sink KSTREAM-SINK-0000000005: the serde of its values is nil"}},
		{"names", func(b *Builder) {
			in := Stream(b, "in", texts.Named("a/b"))
			in.Filter(is, "one", "two")
			in.Repartition(Repartitioned{Name: "x y", Partitions: -1})
		}, []string{
			`name of a KSTREAM-SOURCE: "a/b" is not a name: only letters, digits, '.', '_' and '-' may be used`,
			"a KSTREAM-FILTER has 2 names: [one two]",
			`name of a repartition topic: "x y" is not a name: only letters, digits, '.', '_' and '-' may be used`,
			"repartition topic x y has -1 partitions",
			`sink x y-repartition-sink: topic "x y-repartition" is not a name: only letters, digits, '.', '_' and '-' may be used`,
			`source x y-repartition-source: topic "x y-repartition" is not a name: only letters, digits, '.', '_' and '-' may be used`}},
		{"store's name", func(b *Builder) {
			Stream(b, "in", texts).GroupByKey().Count(Materialized{Name: "my counts"})
		}, []string{`processor KSTREAM-AGGREGATE-0000000001: store "my counts" is not a name: only letters, digits, '.', '_' and '-' may be used (its changelog is named after it)`}},
		{"one topic, two serdes", func(b *Builder) {
			Stream(b, "in", texts)
			Stream(b, "in", With(serde.String, serde.JSON[string]()))
		}, []string{"topic in is read with serdes [string, string] by source KSTREAM-SOURCE-0000000000 and with serdes [string, json:string] by source KSTREAM-SOURCE-0000000001"}},
		{"a store of an operator and of a processor", func(b *Builder) {
			in := Stream(b, "in", texts)
			in.GroupByKey().Count(Materialized{Name: "s"})
			Process(in, newEcho[string, string], texts, processor.KeyValue("s", serde.String, serde.Int64))
		}, []string{"store s is declared twice: as timestamped key-value[string, int64] for KSTREAM-AGGREGATE-0000000001 and as key-value[string, int64] for KSTREAM-PROCESSOR-0000000002"}},
		{"two defaults", func(b *Builder) {
			s := Stream(b, "in", texts).Split()
			s.DefaultBranch()
			s.DefaultBranch("other")
		}, []string{"KSTREAM-BRANCH-0000000001 has two default branches, KSTREAM-BRANCH-00000000010 and KSTREAM-BRANCH-0000000001other"}},
		{"two builders", func(b *Builder) {
			Stream(b, "in", texts).Merge(Stream(NewBuilder(), "in", texts))
		}, []string{"KSTREAM-MERGE-0000000001: the streams come from two builders"}},
		{"repartition topic twice", func(b *Builder) {
			in := Stream(b, "in", texts)
			in.Repartition(Repartitioned{Name: "r"})
			in.Repartition(Repartitioned{Name: "r"})
		}, []string{
			"two nodes have the name r-repartition-filter: a processor and a processor",
			"two nodes have the name r-repartition-sink: a sink and a sink",
			"topic r-repartition is read by two sources, r-repartition-source and r-repartition-source; read it once and use that node twice",
			"two nodes have the name r-repartition-source: a source and a source"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := NewBuilder()
			test.build(b)
			topology, err := b.Build()
			want := "topology: " + strings.Join(test.want, "\n")
			if err == nil || err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
			if topology != nil {
				t.Error("there is a topology all the same")
			}
			if _, again := b.Build(); again == nil || again.Error() != want {
				t.Errorf("the second time:\n%v", again)
			}
		})
	}
}
