package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

type (
	topology = processor.Topology
	strCtx   = processor.Context[string, string]
	strRec   = processor.Record[string, string]
	strFunc  = processor.Func[string, string, string, string]
)

func newEcho() strFunc { return func(ctx strCtx, r strRec) error { return ctx.Forward(r) } }

func source(t *topology, name string, topics ...string) {
	processor.AddSource(t, name, serde.String, serde.String, topics...)
}

func echo(t *topology, name string, parents ...string) {
	processor.AddProcessor(t, name, newEcho, parents)
}

func sink(t *topology, name, topic string, parents ...string) {
	processor.AddSink(t, name, topic, serde.String, serde.String, parents...)
}

// shared is a processor that its constructor wrongly makes only once.
type shared struct{ strFunc }

// strayInit has an Init that nobody would call.
type strayInit struct{ strFunc }

func (strayInit) Init(processor.Context[string, int64]) error { return nil }

func TestBuildReportsProblems(t *testing.T) {
	once := &shared{newEcho()}
	tests := []struct {
		name  string
		build func(t *topology)
		want  []string // the lines, behind "topology: "
	}{
		{"empty", func(t *topology) {}, []string{"it is empty: it has no source"}},
		{"cycle", func(t *topology) {
			source(t, "source", "in")
			echo(t, "a", "source", "c")
			echo(t, "b", "a")
			echo(t, "c", "b")
		}, []string{"the nodes form a cycle: a -> b -> c -> a; a loop is made through a topic"}},
		{"unconnected", func(t *topology) {
			source(t, "source", "in")
			echo(t, "alone")
			sink(t, "nowhere", "out")
		}, []string{"processor alone is not connected: it has no parent", "sink nowhere is not connected: it has no parent"}},
		{"two nodes of one name", func(t *topology) {
			source(t, "twice", "in")
			sink(t, "twice", "out", "twice")
		}, []string{"two nodes have the name twice: a source and a sink"}},
		{"unknown parent", func(t *topology) {
			source(t, "source", "in")
			echo(t, "a", "sauce")
		}, []string{"processor a is not connected: its parent sauce does not exist"}},
		{"sink as parent", func(t *topology) {
			source(t, "source", "in")
			sink(t, "sink", "out", "source")
			echo(t, "a", "sink")
		}, []string{"processor a: its parent sink is a sink, which forwards nothing"}},
		{"parent twice", func(t *topology) {
			source(t, "source", "in")
			echo(t, "a", "source", "source")
		}, []string{"processor a: its parent source is named twice"}},
		{"types", func(t *topology) {
			source(t, "source", "in")
			processor.AddSink(t, "sink", "out", serde.String, serde.Int64, "source")
		}, []string{"sink sink takes records of [string, int64], but its parent source forwards [string, string]"}},
		{"nil serde", func(t *topology) {
			processor.AddSource[string, string](t, "source", nil, nil, "in")
		}, []string{"source source: the serde of its keys is nil", "source source: the serde of its values is nil"}},
		{"names of topics", func(t *topology) {
			source(t, "source", "a/b", "..")
			sink(t, "sink", strings.Repeat("x", 250), "source")
		}, []string{
			`source source: topic "a/b" is not a name: only letters, digits, '.', '_' and '-' may be used`,
			`source source: topic ".." is not a name`,
			`sink sink: topic "` + strings.Repeat("x", 250) + `" is not a name: it has 250 characters, and 249 are the most`}},
		{"no name, no topic", func(t *topology) {
			source(t, "", "in")
			source(t, "source")
			sink(t, "sink", "", "source")
		}, []string{"a source has no name", "source source reads no topic", "sink sink has no topic"}},
		{"topic of two sources", func(t *topology) {
			source(t, "one", "in", "in")
			source(t, "two", "other", "in")
		}, []string{"topic in is read by two sources, one and two; read it once and use that node twice"}},
		{"store twice", func(t *topology) {
			source(t, "source", "in")
			processor.AddProcessor(t, "a", newEcho, []string{"source"}, processor.KeyValue("s", serde.String, serde.Int64))
			processor.AddProcessor(t, "b", newEcho, []string{"source"}, processor.KeyValue("s", serde.String, serde.String))
			t.Connect("a", processor.TimestampedKeyValue("s", serde.String, serde.Int64))
		}, []string{
			"store s is declared twice: as key-value[string, int64] for a and as key-value[string, string] for b",
			"store s is declared twice: as key-value[string, int64] for a and as timestamped key-value[string, int64] for a"}},
		{"store's name", func(t *topology) {
			source(t, "source", "in")
			processor.AddProcessor(t, "a", newEcho, []string{"source"}, processor.KeyValue("my store", serde.String, serde.Int64), processor.KeyValue("", serde.String, serde.Int64), nil)
			t.Connect("b", processor.KeyValue("s", serde.String, serde.Int64))
		}, []string{
			"processor a: one of its stores has no name",
			"processor a: one of its stores is nil",
			"store s: there is no processor b to connect it to",
			`processor a: store "my store" is not a name: only letters, digits, '.', '_' and '-' may be used (its changelog is named after it)`}},
		{"store's serdes", func(t *topology) {
			source(t, "source", "in")
			processor.AddProcessor(t, "a", newEcho, []string{"source"}, processor.KeyValue[string, int64]("s", nil, nil), processor.Versioned("v", serde.String, serde.Nullable[int64](nil), time.Hour))
		}, []string{
			"processor a: store s: the serde of its keys is nil\nthe serde of its values is nil",
			"processor a: store v: the serde of its values is nil"}},
		{"constructors", func(t *topology) {
			source(t, "source", "in")
			processor.AddProcessor(t, "a", func() *shared { return once }, []string{"source"})
			processor.AddProcessor(t, "b", func() processor.Processor[string, string, string, string] { return nil }, []string{"source"})
			processor.AddProcessor[string, string, string, string, strFunc](t, "c", nil, []string{"source"})
			processor.AddProcessor(t, "d", func() strayInit { return strayInit{} }, []string{"source"})
		}, []string{
			"processor a: the function that makes it gives the same one twice; it must make a new one for each task, which may run on another goroutine",
			"processor b: the function that makes it gives nil",
			"processor c: the function that makes it is nil",
			"processor d: its method Init is func(processor_test.strayInit, processor.Context[string,int64]) error, but it has to be func(processor.Context[string, string]) error to be called"}},
		{"internal topic twice", func(t *topology) {
			source(t, "source", "in")
			t.AddInternalTopic(processor.InternalTopic{Name: "in", Partitions: 3})
			t.AddInternalTopic(processor.InternalTopic{Name: "in"})
		}, []string{"internal topic in is declared twice, with 3 and with 0 partitions (0: as many as its input)"}},
		{"everything at once", func(t *topology) {
			source(t, "source", "in")
			sink(t, "sink", "out?", "source")
			echo(t, "sink", "source")
			echo(t, "a", "sauce")
			echo(t, "b", "c")
			echo(t, "c", "b")
		}, []string{
			"two nodes have the name sink: a sink and a processor",
			"processor a is not connected: its parent sauce does not exist",
			"the nodes form a cycle: b -> c -> b; a loop is made through a topic",
			`sink sink: topic "out?" is not a name: only letters, digits, '.', '_' and '-' may be used`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			topology := processor.NewTopology()
			test.build(topology)
			err := topology.Build()
			want := "topology: " + strings.Join(test.want, "\n")
			if err == nil || err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
			if topology.Subtopologies() != nil {
				t.Error("it was divided all the same")
			}
		})
	}
}

func TestBuildAgain(t *testing.T) {
	top := processor.NewTopology()
	echo(top, "echo", "source") // a parent may come later
	source(top, "source", "in")
	for range 2 {
		if err := top.Build(); err != nil {
			t.Fatal(err)
		}
	}
	echo(top, "late", "source")
	if err := top.Build(); err == nil || err.Error() != "topology: processor late: added after Build" {
		t.Error(err)
	}
}

func TestSubtopologies(t *testing.T) {
	shared := processor.KeyValue("shared", serde.String, serde.Int64)
	top := processor.NewTopology()
	source(top, "z-source", "z", "y")
	source(top, "a-source", "a")
	source(top, "b-source", "b")
	processor.AddProcessor(top, "a-echo", newEcho, []string{"a-source"}, shared)
	processor.AddProcessor(top, "z-echo", newEcho, []string{"z-source"}, processor.KeyValue("own", serde.String, serde.Int64))
	processor.AddProcessor(top, "b-echo", newEcho, []string{"b-source"}, shared)
	sink(top, "one", "out", "a-echo", "b-echo")
	sink(top, "two", "out", "a-echo")
	sink(top, "three", "between", "z-echo")
	top.AddInternalTopic(processor.InternalTopic{Name: "between"})
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, sub := range top.Subtopologies() {
		if sub.ID != i {
			t.Errorf("sub-topology %d has id %d", i, sub.ID)
		}
		line := strings.Join(sub.Sources, ",") + " -> " + strings.Join(sub.Sinks, ",") + " |"
		for _, s := range sub.Stores {
			line += " " + s.Name + " " + s.String()
		}
		got = append(got, line)
	}
	want := []string{"y,z -> between | own key-value[string, int64]", "a,b -> out | shared key-value[string, int64]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if i, ok := top.Internal("between"); !ok || i.Name != "between" || len(top.InternalTopics()) != 1 {
		t.Error("the internal topic is not known")
	}
	if _, ok := top.Internal("out"); ok {
		t.Error("out is not internal")
	}
}

func TestDescribe(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddProcessor(top, "count", newEcho, []string{"source"}, processor.KeyValue("counts", serde.String, serde.Int64))
	sink(top, "sink", "out", "count")
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	const want = `Topologies:
   Sub-topology: 0
    Source: source (topics: [in])
      --> count
    Processor: count (stores: [counts])
      --> sink
      <-- source
    Sink: sink (topic: out)
      <-- count

`
	if got := top.Describe(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "A.b_c-9", "...", strings.Repeat("x", 249)} {
		if err := processor.CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a b", "a/b", "ä", "a\x00", strings.Repeat("x", 250)} {
		if err := processor.CheckName(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
