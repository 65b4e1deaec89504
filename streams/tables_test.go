package streams

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// The rules of tables are tested against Kafka Streams in tests/golden, with a type that has nil.
// Here stands what is left: types without nil, types that change, and what Build says.

// TestTableOfATypeWithoutNil: an empty row is a row, a null deletes.
func TestTableOfATypeWithoutNil(t *testing.T) {
	b := NewBuilder()
	users := Table(b, "users", texts, Materialized{Name: "users"})
	lengths := MapTableValues(users, func(v string) int64 { return int64(len(v)) }, serde.Int64, Materialized{Name: "lengths"})
	lengths.Filter(func(_ string, n int64) bool { return n != 3 }).ToStream().To("out")
	f := newFlow(t, b)
	f.send("users", "a", "", 5)
	f.send("users", "a", "xx", 3)
	f.send("users", "a", "xxx", 4)
	f.send("users", "a", "yyy", 5)
	f.send("users", "a", "∅", 6)
	f.send("users", "b", "∅", 7)
	f.expect("out a=0 @5", "out a=2 @3", "out a=∅ @4")
	f.expectDrops()
}

// TestRowsMoveBetweenGroups: with types that change on the way, and one that groups cannot show.
func TestRowsMoveBetweenGroups(t *testing.T) {
	b := NewBuilder()
	team := func(_, v string) (string, int64) {
		name, points, _ := strings.Cut(v, ":")
		return name, int64(len(points))
	}
	teams := GroupTable(Table(b, "users", texts, Materialized{}), team, With(serde.String, serde.Int64).Named("teams"))
	teams.Count(Materialized{Name: "members"}).ToStream().To("members")
	teams.Reduce(func(a, b int64) int64 { return a + b }, func(a, b int64) int64 { return a - b }, Materialized{Name: "points"}).ToStream().To("points")
	all := AggregateTable(teams, func() string { return "-" },
		func(k string, v int64, row string) string { return row + "+" + k }, func(k string, v int64, row string) string { return row + "-" + k }, serde.String, Materialized{})
	all.ToStream().To("all")
	f := newFlow(t, b)
	f.send("users", "ann", "red:xx", 10)
	f.expect("members red=1 @10", "points red=2 @10", "all red=-+red @10")
	f.send("users", "ann", "red:xxx", 9)
	f.expect("members red=1 @10", "points red=3 @10", "all red=-+red-red+red @10")
	f.send("users", "ann", "blue:x", 11)
	f.expect("members red=0 @11", "points red=0 @11", "all red=-+red-red+red-red @11", "members blue=1 @11", "points blue=1 @11", "all blue=-+blue @11")
	f.send("users", "ann", "∅", 12)
	f.expect("members blue=0 @12", "points blue=0 @12", "all blue=-+blue-blue @12")
	f.expectDrops()
}

// TestStoresOfTables: only what is named, or needed, is kept.
func TestStoresOfTables(t *testing.T) {
	b := NewBuilder()
	plain := Table(b, "plain", texts, Materialized{})
	plain.Filter(func(k, v string) bool { return true }).ToStream().To("out")
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	GroupTable(plain, func(k, v string) (string, string) { return v, k }, texts).Count(Materialized{Name: "counts"})
	later, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		t    *Topology
		want string
	}{{topology, ""}, {later, "plain-STATE-STORE-0000000000 counts"}} {
		var names []string
		for _, sub := range test.t.Subtopologies() {
			for _, s := range sub.Stores {
				names = append(names, s.Name)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("stores %q, want %q", got, test.want)
		}
	}
}

func TestProblemsOfTables(t *testing.T) {
	b := NewBuilder()
	users := Table(b, "users", texts, Materialized{Name: "users"})
	users.Filter(nil, Named("filter"), Materialized{Name: "users"})
	MapTableValues[string, string, string](users, nil, serde.String, Named("map"))
	MapTableValues(users, strings.ToUpper, nil, Named("upper"), Materialized{Name: "upper"})
	Table(b, "others", With[string, string](serde.String, nil).Named("others"), Materialized{})
	grouped := GroupTable[string, string, string, string](users, nil, texts.Named("group"))
	grouped.Reduce(nil, nil, Materialized{Name: "reduced"}, "reduce")
	Aggregate[string, string, string](Stream(b, "in", texts).GroupByKey(), nil, nil, serde.String, Materialized{Name: "aggregated"}, "aggregate")
	_, err := b.Build()
	if err == nil {
		t.Fatal("it was built")
	}
	for _, want := range []string{"filter: its function is nil", "map: its function is nil", "group: its function is nil", "reduce: its function is nil", "aggregate: its function is nil",
		"store users is the store of two operators", "upper: a serde is nil", "others: a serde is nil"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

// keyless forwards with another key, and when it must not.
type keyless struct{ forward func() error }

func (p *keyless) Init(ctx processor.Context[string, string]) error {
	p.forward = func() error { return ctx.Forward(processor.Record[string, string]{Key: "none"}) }
	return nil
}

func (p *keyless) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	return ctx.Forward(processor.WithKey(r, "another"))
}

func TestProcessValuesKeepsTheKey(t *testing.T) {
	b := NewBuilder()
	var made []*keyless
	in := Stream(b, "in", texts)
	ProcessValues(in, func() *keyless { p := &keyless{}; made = append(made, p); return p }, texts).GroupByKey().Count(Materialized{Name: "counts"}).ToStream().To("out")
	f := newFlow(t, b)
	f.send("in", "k", "v", 1)
	f.send("in", "∅", "v", 2)
	f.expect("out k=1 @1")
	f.expectDrops("KSTREAM-AGGREGATE-0000000002: null key")
	if err := made[len(made)-1].forward(); err == nil || !strings.Contains(err.Error(), "no key to forward with") {
		t.Error(err)
	}
	if len(f.topology.Subtopologies()) != 1 {
		t.Error("a value processor led to a repartition")
	}
}

// TestChangesHeldBack: the first old value and the last new one; old values only for who asked, and
// nothing for a row that came and went.
func TestChangesHeldBack(t *testing.T) {
	type row = change[string]
	was := row{old: "was", hasOld: true}
	came, went, changed := row{new: "is", hasNew: true}, row{old: "is", hasOld: true}, row{new: "is", hasNew: true, old: "is", hasOld: true}
	for _, test := range []struct {
		changes []row
		old     bool
		want    row
		sent    bool
	}{
		{[]row{came, changed}, true, came, true},
		{[]row{came, went}, true, row{}, false},
		{[]row{was, came}, true, row{new: "is", hasNew: true, old: "was", hasOld: true}, true},
		{[]row{was, came}, false, came, true},
		{[]row{was, came, went}, true, was, true},
		{[]row{was, came, went}, false, row{}, true},
	} {
		c := test.changes[0]
		for _, later := range test.changes[1:] {
			c = lastChange(c, later)
		}
		if got, sent := settled(c, test.old); got != test.want || sent != test.sent {
			t.Errorf("%+v, old %v: %+v, %v", test.changes, test.old, got, sent)
		}
	}
}
