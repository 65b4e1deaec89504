package streamstest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/streams/streamstest"
)

// The rules of caching are tested against Kafka Streams in tests/golden, one record a commit. Here
// stand intervals of many records, and the switch.

// interval pipes records "key=value@time" into a topic and commits once.
func interval(t *testing.T, d *streamstest.Driver, topic string, records ...string) {
	t.Helper()
	in := streamstest.Input(d, topic, serde.String, serde.String)
	for _, r := range records {
		kv, ms, _ := strings.Cut(r, "@")
		key, value, _ := strings.Cut(kv, "=")
		var when int64
		if _, err := fmt.Sscan(ms, &when); err != nil {
			t.Fatal(err)
		}
		if value == "null" {
			in.PipeNull(key, at(when))
		} else {
			in.Pipe(key, value, at(when), kafka.Header{Key: "from", Value: []byte(value)})
		}
	}
	d.Commit()
}

func read(d *streamstest.Driver, topic string) (all []string) {
	for _, r := range streamstest.Output(d, topic, serde.String, serde.String).ReadAll() {
		all = append(all, show(r))
	}
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func plus(row, v string) string { return row + "+" + v }

// orNil is a reducer for a type with nil: x deletes.
func orNil(row, v *string) *string {
	if *v == "x" {
		return nil
	}
	sum := *row + "+" + *v
	return &sum
}

var manual = streamstest.Config{ManualCommit: true}

// An aggregation sends the last row of each key, in the order of the last updates, with the headers of
// the record that made it; one that came and went is not sent, and a delete has the time of its record.
func TestCachedAggregate(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		in := streams.Stream(b, "in", streams.With(serde.String, serde.Nullable(serde.String)))
		in.GroupByKey().Reduce(orNil, streams.Materialized{Name: "sums", Caching: true}).ToStream().To("out")
	})
	d := streamstest.New(t, topology, manual)
	interval(t, d, "in", "a=1@5", "b=1@6", "a=2@4", "new=1@1", "new=x@2")
	same(t, "first", read(d, "out"), "b=1@6 from:1", "a=1+2@5 from:2")
	interval(t, d, "in", "a=x@3", "b=2@7", "b=x@8", "b=3@2")
	same(t, "second", read(d, "out"), "a=null@3 from:x", "b=3@2 from:3")
	d.Commit()
	same(t, "third", read(d, "out"))
}

// The old value is the row before the interval: what is grouped behind stays right. Both tables
// are flushed in one commit.
func TestCachedTablesBehindTables(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		users := streams.Table(b, "users", texts, streams.Materialized{})
		teams := streams.GroupTable(users, func(user, team string) (string, string) { return team, user }, texts)
		sub := func(row, v string) string { return row + "-" + v }
		teams.Reduce(plus, sub, streams.Materialized{Name: "teams"}).ToStream().To("teams")
		upper := streams.MapTableValues(users, strings.ToUpper, serde.String, streams.Materialized{Name: "upper"})
		upper.Filter(func(_, v string) bool { return v != "RED" }, streams.Materialized{Name: "others"}).ToStream().To("others")
		streams.LeftJoinTables(users, upper, func(l, r string, _ bool) string { return l + r }, serde.String, streams.Materialized{Name: "both"}).ToStream().To("both")
	})
	cfg := manual
	cfg.Caching = true
	d := streamstest.New(t, topology, cfg)
	interval(t, d, "users", "ann=red@1", "ann=blue@2", "bob=red@3", "ann=green@4")
	d.Commit() // of what came back from the repartition topic
	same(t, "teams", read(d, "teams"), "red=bob@3 from:red", "green=ann@4 from:green")
	same(t, "others", read(d, "others"), "ann=GREEN@4 from:green")
	same(t, "both", read(d, "both"), "bob=redRED@3 from:red", "ann=greenGREEN@4 from:green")
	interval(t, d, "users", "bob=green@5", "bob=null@6", "ann=red@7", "eve=red@8", "eve=null@9")
	d.Commit()
	same(t, "teams", read(d, "teams"), "green=ann-ann@7 from:red", "red=bob-bob+ann@7 from:red")
	same(t, "others", read(d, "others"), "ann=null@7 from:red")
	same(t, "both", read(d, "both"), "bob=null@6", "ann=redRED@7 from:red")
	if rows := rowsOf(t, d, "teams"); !slices.Equal(rows, []string{"green=ann-ann", "red=bob-bob+ann"}) {
		t.Errorf("rows %q", rows)
	}
}

func rowsOf(t *testing.T, d *streamstest.Driver, store string) (rows []string) {
	t.Helper()
	for e, err := range processor.TimestampedKeyValue(store, serde.String, serde.String).In(d).All() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, e.Key+"="+e.Value)
	}
	return rows
}

// Rows can be read before they are sent.
func TestCachedRowsAreReadAtOnce(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		table := streams.Table(b, "table", texts, streams.Materialized{Name: "table", Caching: true})
		streams.JoinTable(streams.Stream(b, "in", texts), table, func(_, v, row string) string { return v + row }, serde.String).To("out")
	})
	d := streamstest.New(t, topology, manual)
	streamstest.Input(d, "table", serde.String, serde.String).Pipe("k", "row", at(1))
	streamstest.Input(d, "in", serde.String, serde.String).Pipe("k", "v", at(2))
	same(t, "out", read(d, "out"), "k=vrow@2")
}

// The switch: of the application, of a table, and what has none.
func TestCachingSwitch(t *testing.T) {
	for _, test := range []struct {
		all  bool
		m    streams.Materialized
		want []string
	}{
		{false, streams.Materialized{Name: "s"}, []string{"a=1@1 from:1", "a=1+2@2 from:2"}},
		{true, streams.Materialized{Name: "s"}, []string{"a=1+2@2 from:2"}},
		{true, streams.Materialized{}, []string{"a=1+2@2 from:2"}},
		{false, streams.Materialized{Caching: true}, []string{"a=1+2@2 from:2"}},
		{true, streams.Materialized{CachingDisabled: true}, []string{"a=1@1 from:1", "a=1+2@2 from:2"}},
	} {
		topology := build(t, func(b *streams.Builder) {
			streams.Stream(b, "in", texts).GroupByKey().Reduce(plus, test.m).ToStream().To("out")
		})
		d := streamstest.New(t, topology, streamstest.Config{ManualCommit: true, Caching: test.all})
		interval(t, d, "in", "a=1@1", "a=2@2")
		same(t, fmt.Sprintf("all %v, %+v", test.all, test.m), read(d, "out"), test.want...)
	}
	// A table that keeps no rows, and one that keeps a history, send everything.
	for _, m := range []streams.Materialized{{}, {Name: "s", History: time.Hour}} {
		topology := build(t, func(b *streams.Builder) { streams.Table(b, "in", texts, m).ToStream().To("out") })
		d := streamstest.New(t, topology, streamstest.Config{ManualCommit: true, Caching: true})
		interval(t, d, "in", "a=1@1", "a=2@2")
		same(t, fmt.Sprintf("%+v", m), read(d, "out"), "a=1@1 from:1", "a=2@2 from:2")
	}
}

func TestCachingProblems(t *testing.T) {
	for _, m := range []streams.Materialized{{Name: "s", Caching: true, CachingDisabled: true}, {Name: "s", Caching: true, History: time.Hour}} {
		b := streams.NewBuilder()
		streams.Table(b, "in", texts.Named("rows"), m)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "rows") || !strings.Contains(err.Error(), "cach") {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// A table that holds too much sends it before the commit.
func TestCachingMaxEntries(t *testing.T) {
	topology := build(t, func(b *streams.Builder) {
		streams.Stream(b, "in", texts).GroupByKey().Reduce(plus, streams.Materialized{Name: "s"}).ToStream().To("out")
	})
	d := streamstest.New(t, topology, streamstest.Config{ManualCommit: true, Caching: true, CachingMaxEntries: 2})
	in := streamstest.Input(d, "in", serde.String, serde.String)
	for i, key := range []string{"a", "b", "a", "c", "a"} {
		in.Pipe(key, fmt.Sprint(i), at(int64(i)))
	}
	same(t, "before the commit", read(d, "out"), "b=1@1", "a=0+2@2", "c=3@3")
	d.Commit()
	same(t, "at the commit", read(d, "out"), "a=0+2+4@4")
}

// What fails behind a table at the commit names the table, the key and the node; nothing of it is
// committed, and the driver stays failed.
func TestCachedUpdateFails(t *testing.T) {
	no := errors.New("no")
	topology := build(t, func(b *streams.Builder) {
		rows := streams.Stream(b, "in", texts).GroupByKey().Reduce(plus, streams.Materialized{Name: "s", Caching: true}, "sums")
		streams.Process(rows.ToStream(), func() onText { return func(ctx, rec) error { return no } }, texts.Named("work")).To("out")
	})
	d := streamstest.New(t, topology, manual)
	before := d.Committed().Commits
	err := d.Try(func() { interval(t, d, "in", "a=1@1") })
	if !errors.Is(err, no) {
		t.Fatal(err)
	}
	for _, part := range []string{"table sums", `key "a"`, "node work"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if n := d.Committed().Commits; n != before {
		t.Errorf("%d commits, want %d", n, before)
	}
	if rows := rowsOf(t, d, "s"); len(rows) > 0 {
		t.Errorf("rows %q", rows)
	}
}

// Random updates, once with caching and once without: an interval sends, for each of its keys, what
// the last update sent without, and the rows are the same.
func TestCachingSendsTheLastUpdate(t *testing.T) {
	random := testseed.New(t)
	drivers := [2]*streamstest.Driver{}
	for i := range drivers {
		topology := build(t, func(b *streams.Builder) {
			users := streams.Table(b, "users", texts, streams.Materialized{Name: "users"})
			users.ToStream().To("updates")
			users.Filter(func(_, v string) bool { return v != "0" }, streams.Materialized{Name: "kept"})
			teams := streams.GroupTable(users, func(user, team string) (string, string) { return team, user }, texts)
			sub := func(row, v string) string { return row + "-" + v }
			teams.Reduce(plus, sub, streams.Materialized{Name: "teams"}).ToStream().To("teams")
		})
		drivers[i] = streamstest.New(t, topology, streamstest.Config{ManualCommit: true, Caching: i == 1})
	}
	rows := map[string]bool{} // of users, before the interval
	for n := range 50 {
		var records []string
		for i := range random.IntN(12) {
			value := fmt.Sprint(random.IntN(4))
			if value == "3" {
				value = "null"
			}
			records = append(records, fmt.Sprintf("u%d=%s@%d", random.IntN(5), value, 20*n+i))
		}
		for _, d := range drivers {
			interval(t, d, "users", records...)
			d.Commit()
		}
		same(t, fmt.Sprintf("interval %d, %v", n, records), read(drivers[1], "updates"), collapse(read(drivers[0], "updates"), rows)...)
		same(t, "users", rowsOf(t, drivers[1], "users"), rowsOf(t, drivers[0], "users")...)
		same(t, "kept", rowsOf(t, drivers[1], "kept"), rowsOf(t, drivers[0], "kept")...)
	}
	// Groups see fewer changes with caching, but the same members in the end.
	members := func(d *streamstest.Driver) (all []string) {
		for _, row := range rowsOf(t, d, "teams") {
			team, text, _ := strings.Cut(row, "=")
			n := strings.Count("+"+text, "+") - strings.Count(text, "-")
			all = append(all, fmt.Sprint(team, " has ", n))
		}
		return all
	}
	same(t, "members", members(drivers[1]), members(drivers[0])...)
	if with, without := len(read(drivers[1], "teams")), len(read(drivers[0], "teams")); with >= without {
		t.Errorf("%d changes of teams with caching, %d without", with, without)
	}
}

// collapse gives the last update of each key, in their order, without those of rows that came and
// went, and brings rows up to date.
func collapse(updates []string, rows map[string]bool) (last []string) {
	seen := map[string]bool{}
	for _, u := range slices.Backward(updates) {
		key, value, _ := strings.Cut(u, "=")
		if seen[key] {
			continue
		}
		seen[key] = true
		exists := !strings.HasPrefix(value, "null@")
		if exists || rows[key] {
			last = append(last, u)
		}
		rows[key] = exists
	}
	slices.Reverse(last)
	return last
}
