package streams_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// TestGroupedTable moves rows between groups, through two sub-topologies and their changelogs,
// and loses the disk in between: a row that is taken out of a group has to be the one that was
// put into it.
func TestGroupedTable(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	builder := streams.NewBuilder()
	users := streams.Table(builder, e.in, streams.With(serde.String, serde.String), streams.Materialized{Name: "users"})
	teams := streams.GroupTable(users, func(user, team string) (string, string) { return team, user }, streams.With(serde.String, serde.String))
	teams.Count(streams.Materialized{Name: "members"}).ToStream().To(e.out)
	topology, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	const n = 40
	run := func(team func(i int) []byte) map[string]int64 {
		var records []kafka.Record
		for i := range n {
			records = append(records, kafka.Record{Topic: e.in, Partition: int32(i % 2), Timestamp: 1000, Key: fmt.Append(nil, "user ", i), Value: team(i)})
		}
		e.produceRecords(records...)
		cfg := e.config()
		cfg.Guarantee = streams.ExactlyOnce
		app := e.start(topology, cfg)
		app.catchUp()
		app.close()
		last, _ := e.counts(e.out)
		return last
	}
	want := map[string]int64{"red": 20, "blue": 20}
	if diff := cmp.Diff(want, run(func(i int) []byte { return []byte([]string{"red", "blue"}[i/20]) })); diff != "" {
		t.Errorf("members: -want +got\n%s", diff)
	}
	if err := os.RemoveAll(e.dir); err != nil {
		t.Fatal(err)
	}
	want = map[string]int64{"red": 0, "blue": 15, "green": 20}
	got := run(func(i int) []byte {
		switch {
		case i < 20:
			return []byte("green")
		case i < 25:
			return nil
		}
		return []byte("blue")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members: -want +got\n%s", diff)
	}
}
