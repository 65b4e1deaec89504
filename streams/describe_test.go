package streams

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Cases of Kafka Streams that cannot be said here, with the reason. A case that is neither
// here nor passes fails the test, and so does one that is here and could be said.
var notExpressible = map[string]string{
	"wordcount-materialized-unnamed": "a Materialized without a name is the same as none",
	"refused-store-not-added":        "a store's handle declares it where it is connected",
}

// What Tidemark says where Kafka Streams refuses.
var refusals = map[string]string{
	"refused-illegal-name":                  `topology: name of a KSTREAM-FILTER: "not a name" is not a name: only letters, digits, '.', '_' and '-' may be used`,
	"refused-no-parent":                     "topology: processor process is not connected: it has no parent",
	"refused-overlapping-streams":           "topology: sources KSTREAM-SOURCE-0000000000 [a b] and KSTREAM-SOURCE-0000000001 [b] have some topics in common, but not all; a topic has one source",
	"refused-own-parent":                    "topology: the nodes form a cycle: process -> process; a loop is made through a topic",
	"refused-processor-name-twice":          "topology: two nodes have the name twice: a processor and a processor",
	"refused-sink-as-parent":                "topology: processor process: its parent sink is a sink, which forwards nothing",
	"refused-store-of-two-counts":           "topology: store counts is the store of two operators, KSTREAM-AGGREGATE-0000000001 and KSTREAM-AGGREGATE-0000000003; give one of them another name",
	"refused-stream-name-twice":             "topology: two nodes have the name twice: a processor and a processor",
	"refused-table-and-stream-of-one-topic": "topology: topic in is read by two sources, KSTREAM-SOURCE-0000000000 and KSTREAM-SOURCE-0000000001; read it once and use that node twice",
	"refused-topic-twice":                   "topology: topic in is read by two sources, source-1 and source-2; read it once and use that node twice",
	"refused-unknown-parent":                "topology: processor process is not connected: its parent nobody does not exist",
}

// TestNamesAreKafkaStreams runs the programs of testdata/describe and compares what they
// become with what Kafka Streams makes of them: see tests/kafka-streams/describe.
func TestNamesAreKafkaStreams(t *testing.T) {
	files, err := filepath.Glob("testdata/describe/*.txt")
	if err != nil || len(files) < 75 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			c := readCase(t, file)
			p := program{t: t, vars: map[string]any{}}
			built := p.run(c.program)
			reason, listed := notExpressible[name]
			switch {
			case p.missing != "" && !listed:
				t.Fatalf("cannot say %s", p.missing)
			case p.missing == "" && listed:
				t.Fatalf("can be said after all (%s)", reason)
			case p.missing != "":
				t.Skip(reason)
			}
			topology, err := built()
			if c.refused {
				if err == nil || err.Error() != refusals[name] {
					t.Fatalf("got  %v\nwant %s", err, refusals[name])
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := unordered(topology.Describe()); got != unordered(c.describe) {
				t.Errorf("got\n%s\nwant\n%s", topology.Describe(), c.describe)
			}
			if got := topics(topology); got != c.topics {
				t.Errorf("got\n%s\nwant\n%s", got, c.topics)
			}
		})
	}
}

// TestProcessorsThatShareAStoreAreOneSubTopology is the case in which Tidemark differs on
// purpose; its file says why.
func TestProcessorsThatShareAStoreAreOneSubTopology(t *testing.T) {
	c := readCase(t, "testdata/describe/unlike/process-shared-own-store.txt")
	p := program{t: t, vars: map[string]any{}}
	topology, err := p.run(c.program)()
	if err != nil || p.missing != "" {
		t.Fatal(p.missing, err)
	}
	subs := topology.Subtopologies()
	if len(subs) != 1 || !slices.Equal(subs[0].Sources, []string{"a", "b", "c"}) || len(subs[0].Stores) != 2 {
		t.Errorf("%s", topology.Describe())
	}
}

type describeCase struct {
	program          []string
	describe, topics string
	refused          bool
}

func readCase(t *testing.T, file string) describeCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prog, rest, described := strings.Cut(string(text), "-- describe --\n")
	if !described {
		prog, _, refused := strings.Cut(string(text), "-- error --\n")
		if !refused {
			t.Fatalf("%s has neither a description nor an error", file)
		}
		return describeCase{program: strings.Split(strings.TrimSpace(prog), "\n"), refused: true}
	}
	describe, topics, _ := strings.Cut(rest, "-- topics --\n")
	return describeCase{program: strings.Split(strings.TrimSpace(prog), "\n"), describe: describe, topics: topics}
}

var (
	listed = regexp.MustCompile(`(?m)((?:-->|<--) |(?:topics|stores): \[)([^\])\n]*)`)
	number = regexp.MustCompile(`^[0-9]+$`)
)

// unordered sorts the lists whose order is that of a Java hash table.
func unordered(text string) string {
	return listed.ReplaceAllStringFunc(text, func(s string) string {
		m := listed.FindStringSubmatch(s)
		names := strings.Split(m[2], ", ")
		slices.Sort(names)
		return m[1] + strings.Join(names, ", ")
	})
}

// topics writes what the sub-topologies read, write and keep, in the form of the cases, for
// an application named app.
func topics(t *Topology) string {
	var b strings.Builder
	real := func(topic string) string {
		if _, ok := t.Internal(topic); ok {
			return "app-" + topic
		}
		return topic
	}
	list := func(what string, names []string) {
		var all []string
		for _, n := range names {
			all = append(all, real(n))
		}
		slices.Sort(all)
		if len(all) > 0 {
			fmt.Fprintf(&b, "  %s %s\n", what, strings.Join(all, " "))
		}
	}
	for _, sub := range t.Subtopologies() {
		fmt.Fprintf(&b, "sub-topology %d\n", sub.ID)
		list("sources", sub.Sources)
		list("sinks", sub.Sinks)
		for _, s := range sub.Sources {
			if i, ok := t.Internal(s); ok {
				partitions := ""
				if i.Partitions > 0 {
					partitions = fmt.Sprintf(" partitions=%d", i.Partitions)
				}
				fmt.Fprintf(&b, "  repartition app-%s%s cleanup.policy=delete message.timestamp.type=CreateTime retention.ms=-1 segment.bytes=52428800\n", s, partitions)
			}
		}
		for _, s := range sub.Stores {
			fmt.Fprintf(&b, "  changelog app-%s-changelog cleanup.policy=compact message.timestamp.type=CreateTime\n", s.Name)
		}
	}
	return b.String()
}

// program runs the programs of the cases. All streams have the same types, so that they can
// be merged.
type program struct {
	t       *testing.T
	b       *Builder
	hand    *processor.Topology // a topology made by hand
	vars    map[string]any
	missing string // the first operation that does not exist
}

type (
	stream  = *KStream[string, int64]
	grouped = *KGroupedStream[string, int64]
	table   = *KTable[string, int64]
	split   = *BranchedKStream[string, int64]

	groupedTable = *KGroupedTable[string, int64]
)

type call struct {
	result, on, op string
	texts          []string
	named          map[string]string
	others         []string
}

var (
	statement = regexp.MustCompile(`^(?:(\w+) = )?(?:(\w+)\.)?(\w+)\((.*)\)$`)
	argument  = regexp.MustCompile(`(?:(\w+)=)?(?:"([^"]*)"|(\w+))(?:, |$)`)
)

func (p *program) run(lines []string) func() (*Topology, error) {
	p.b = NewBuilder()
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line == "topology" {
			p.hand = processor.NewTopology()
			continue
		}
		m := statement.FindStringSubmatch(line)
		if m == nil {
			p.t.Fatalf("not a statement: %s", line)
		}
		c := call{result: m[1], on: m[2], op: m[3], named: map[string]string{}}
		for _, a := range argument.FindAllStringSubmatch(m[4], -1) {
			switch {
			case a[1] != "":
				c.named[a[1]] = a[2]
			case a[3] != "":
				c.others = append(c.others, a[3])
			default:
				c.texts = append(c.texts, a[2])
			}
		}
		if p.hand != nil {
			p.byHand(c)
			continue
		}
		p.vars[c.result] = p.call(c)
		if p.missing != "" {
			break
		}
	}
	if p.hand == nil {
		return p.b.Build
	}
	return func() (*Topology, error) { return p.hand, p.hand.Build() }
}

func (c call) as() []Named {
	if name, ok := c.named["as"]; ok {
		return []Named{Named(name)}
	}
	return nil
}

func (c call) materialized() Materialized { return Materialized{Name: c.named["store"]} }

func (c call) options() (all []TableOption) {
	for _, n := range c.as() {
		all = append(all, n)
	}
	if c.named["store"] != "" {
		all = append(all, c.materialized())
	}
	return all
}

func (c call) list(key string) []string {
	if c.named[key] == "" {
		return nil
	}
	return strings.Split(c.named[key], ",")
}

func (c call) with() Serdes[string, int64] {
	w := With(serde.String, serde.Int64)
	for _, n := range c.as() {
		w = w.Named(string(n))
	}
	return w
}

func handles(names []string) (all []processor.StoreDef) {
	for _, n := range names {
		all = append(all, processor.KeyValue(n, serde.String, serde.Int64))
	}
	return all
}

func newForwarder() processor.Func[string, int64, string, int64] {
	return func(ctx processor.Context[string, int64], r processor.Record[string, int64]) error {
		return ctx.Forward(r)
	}
}

func (p *program) byHand(c call) {
	switch c.op {
	case "addSource":
		processor.AddSource(p.hand, c.texts[0], serde.String, serde.Int64, c.list("topics")...)
	case "addProcessor":
		processor.AddProcessor(p.hand, c.texts[0], newForwarder, c.list("parents"), handles(c.list("own"))...)
	case "addSink":
		processor.AddSink(p.hand, c.texts[0], c.named["topic"], serde.String, serde.Int64, c.list("parents")...)
	case "addStateStore":
		for _, node := range c.list("processors") {
			p.hand.Connect(node, handles(c.texts)[0])
		}
	case "connectProcessorAndStateStores":
		if c.named["stores"] == "nothing" {
			p.missing = "a store that was not added"
			return
		}
		for _, s := range handles(c.list("stores")) {
			p.hand.Connect(c.texts[0], s)
		}
	default:
		p.t.Fatal(c.op)
	}
}

func (p *program) call(c call) any {
	switch on := p.vars[c.on].(type) {
	case nil:
		switch c.op {
		case "stream":
			return StreamTopics(p.b, c.texts, c.with())
		case "table":
			return Table(p.b, c.texts[0], c.with(), c.materialized())
		case "addStateStore":
			return nil // a handle declares its store where it is connected
		}
	case stream:
		return p.onStream(on, c)
	case grouped:
		if c.named["materialized"] != "" {
			break
		}
		switch c.op {
		case "count":
			return on.Count(c.materialized(), c.as()...)
		case "reduce":
			return on.Reduce(func(a, _ int64) int64 { return a }, c.materialized(), c.as()...)
		case "aggregate":
			return Aggregate(on, func() int64 { return 0 }, func(_ string, _, a int64) int64 { return a }, serde.Int64, c.materialized(), c.as()...)
		}
	case groupedTable:
		if c.op == "count" {
			return on.Count(c.materialized(), c.as()...)
		}
	case table:
		switch c.op {
		case "join":
			return JoinTables(on, p.vars[c.others[0]].(table), func(l, r int64) int64 { return l + r }, serde.Int64, c.options()...)
		case "toStream":
			return on.ToStream(c.as()...)
		case "filter":
			return on.Filter(yes, c.options()...)
		case "filterNot":
			return on.FilterNot(yes, c.options()...)
		case "mapValues":
			return MapTableValues(on, func(v int64) int64 { return v }, serde.Int64, c.options()...)
		case "groupBy":
			return GroupTable(on, func(k string, v int64) (string, int64) { return k, v }, c.with())
		}
	case split:
		switch c.op {
		case "branch":
			return on.Branch(yes, c.as()...)
		case "defaultBranch":
			return on.DefaultBranch(c.as()...)
		}
	}
	p.missing = c.op
	return nil
}

func yes(string, int64) bool { return true }

func (p *program) onStream(in stream, c call) any {
	key := func(k string, _ int64) string { return k }
	switch c.op {
	case "filter":
		return in.Filter(yes, c.as()...)
	case "filterNot":
		return in.FilterNot(yes, c.as()...)
	case "mapValues":
		return MapValues(in, func(v int64) int64 { return v }, serde.Int64, c.as()...)
	case "flatMapValues":
		return FlatMapValues(in, func(v int64) []int64 { return []int64{v} }, serde.Int64, c.as()...)
	case "map":
		return Map(in, func(k string, v int64) (string, int64) { return k, v }, c.with())
	case "flatMap":
		return FlatMap(in, func(k string, v int64) []KeyValue[string, int64] { return nil }, c.with())
	case "selectKey":
		return SelectKey(in, key, serde.String, c.as()...)
	case "peek":
		return in.Peek(func(string, int64) {}, c.as()...)
	case "foreach":
		in.Foreach(func(string, int64) {}, c.as()...)
		return nil
	case "merge":
		return in.Merge(p.vars[c.others[0]].(stream), c.as()...)
	case "split":
		return in.Split(c.as()...)
	case "groupByKey":
		return in.GroupByKey(c.as()...)
	case "groupBy":
		return GroupBy(in, key, serde.String, c.as()...)
	case "repartition":
		partitions := 0
		if n := c.named["partitions"]; number.MatchString(n) {
			partitions, _ = strconv.Atoi(n)
		}
		return in.Repartition(Repartitioned{Name: c.named["as"], Partitions: int32(partitions)})
	case "process":
		return Process(in, newForwarder, c.with(), handles(append(c.list("own"), c.list("stores")...))...)
	case "processValues":
		return ProcessValues(in, newForwarder, c.with(), handles(append(c.list("own"), c.list("stores")...))...)
	case "join", "leftJoin":
		t, ok := p.vars[c.others[0]].(table)
		if !ok {
			break
		}
		if c.op == "join" {
			return JoinTable(in, t, func(_ string, v, row int64) int64 { return v + row }, serde.Int64, c.as()...)
		}
		return LeftJoinTable(in, t, func(_ string, v, row int64, _ bool) int64 { return v + row }, serde.Int64, c.as()...)
	case "toTable":
		return in.ToTable(c.materialized(), c.as()...)
	case "to":
		in.To(c.texts[0], c.as()...)
		return nil
	}
	p.missing = c.op
	return nil
}
