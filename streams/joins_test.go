package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
)

// The rules of joins are tested against Kafka Streams in tests/golden, with a type that has nil.
// Here stands what is left: types without nil, types that change, rows that nobody keeps, and what
// Build says.

// TestJoinsOfTypesWithoutNil: an empty row is a row; what is not there is told, not guessed.
func TestJoinsOfTypesWithoutNil(t *testing.T) {
	b := NewBuilder()
	left := Table(b, "left", texts, Materialized{})
	right := MapTableValues(Table(b, "right", texts, Materialized{}), func(v string) int64 { return int64(len(v)) }, serde.Int64)
	outer := OuterJoinTables(left, right, func(l string, hasLeft bool, n int64, hasRight bool) string {
		return fmt.Sprint("[", l, "]", hasLeft, n, hasRight)
	}, serde.String)
	outer.ToStream().To("outer")
	LeftJoinTable(Stream(b, "in", texts), outer, func(k, v, row string, found bool) string { return v + row + fmt.Sprint(found) }, serde.String).To("looked-up")
	f := newFlow(t, b)
	f.send("left", "a", "", 1)
	f.send("right", "a", "", 2)
	f.send("in", "a", "v", 3)
	f.send("left", "a", "∅", 4)
	f.send("right", "a", "∅", 5)
	f.send("in", "a", "v", 6)
	f.expect("outer a=[]true 0 false @1", "outer a=[]true 0 true @2", "looked-up a=v[]true 0 truetrue @3", "outer a=[]false 0 true @4", "outer a=∅ @5", "looked-up a=vfalse @6")
	f.expectDrops()
}

// TestLookupsOfRowsThatAreNotKept goes down to the stores through maps, filters and joins.
func TestLookupsOfRowsThatAreNotKept(t *testing.T) {
	b := NewBuilder()
	left, right := Table(b, "left", texts, Materialized{}), Table(b, "right", texts, Materialized{})
	long := MapTableValues(left.Filter(func(_, v string) bool { return len(v) > 1 }), strings.ToUpper, serde.String)
	inner := JoinTables(long, right, func(l, r string) string { return l + r }, serde.String)
	JoinTable(Stream(b, "in", texts), inner, func(_, v, row string) string { return v + row }, serde.String).To("out")
	f := newFlow(t, b)
	f.send("left", "a", "xx", 1)
	f.send("in", "a", "v", 2)
	f.send("right", "a", "y", 3)
	f.send("in", "a", "v", 4)
	f.send("left", "a", "x", 5)
	f.send("in", "a", "v", 6)
	f.expect("out a=vXXy @4")
}

// TestTableWithAHistory: late rows do not come into joins and groups, and are found by their time.
func TestTableWithAHistory(t *testing.T) {
	b := NewBuilder()
	prices := Table(b, "prices", texts, Materialized{Name: "prices", History: 100 * time.Millisecond})
	cheap := prices.Filter(func(_, v string) bool { return v != "9" })
	cheap.ToStream().To("cheap")
	JoinTables(cheap, Table(b, "names", texts, Materialized{}), func(p, n string) string { return n + p }, serde.String, Named("join")).ToStream().To("named")
	GroupTable(prices, func(k, v string) (string, string) { return v, k }, texts).Count(Materialized{}).ToStream().To("counts")
	LeftJoinTable(Stream(b, "orders", texts), cheap, func(_, v, row string, found bool) string { return v + row }, serde.String).To("orders-out")
	f := newFlow(t, b)
	f.send("names", "a", "n", 0)
	f.send("prices", "a", "5", 50)
	f.expect("cheap a=5 @50", "named a=n5 @50", "counts 5=1 @50")
	f.send("prices", "a", "4", 40) // late
	f.expect("cheap a=4 @40")
	f.expectDrops("join-join-this: late row of a versioned table")
	f.send("orders", "a", "o", 45)
	f.send("orders", "a", "o", 50)
	f.send("orders", "a", "o", 39)
	f.expect("orders-out a=o4 @45", "orders-out a=o5 @50", "orders-out a=o @39")
	f.send("prices", "a", "∅", 200)
	f.expect("cheap a=∅ @200", "named a=∅ @200", "counts 5=0 @200")
	f.send("prices", "a", "3", 60) // older than the history
	f.expect()
	f.expectDrops("KTABLE-SOURCE-0000000001: expired version")
}

func TestProblemsOfJoins(t *testing.T) {
	b, other := NewBuilder(), NewBuilder()
	users, in := Table(b, "users", texts, Materialized{}), Stream(b, "in", texts)
	foreign := Table(other, "foreign", texts, Materialized{})
	JoinTable(in, foreign, func(_, v, _ string) string { return v }, serde.String, "lookup")
	JoinTables(users, foreign, func(l, _ string) string { return l }, serde.String, Named("tables"))
	JoinTable[string, string, string, string](in, users, nil, serde.String, "no-function")
	JoinTables(users, users, func(l, _ string) string { return l }, serde.String, Named("history"), Materialized{Name: "h", History: time.Second})
	Table(b, "unnamed", texts.Named("unnamed"), Materialized{History: time.Second})
	JoinTable(in, users, func(_, v, _ string) string { return v }, serde.String, "not a name")
	_, err := b.Build()
	if err == nil {
		t.Fatal("it was built")
	}
	for _, want := range []string{"lookup: the stream and the table come from two builders", "tables: the tables come from two builders", "no-function: its function is nil",
		"history: only a table of a topic or a stream can keep a history", "unnamed: a table that keeps a history needs a name", `"not a name" is not a name`} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
