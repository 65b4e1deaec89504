package streams

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
)

// joinedProgram joins words, by another key, with users and with what is counted of clicks.
func joinedProgram(t *testing.T, by Repartitioned) *Topology {
	t.Helper()
	b := NewBuilder()
	users := Table(b, "users", texts, Materialized{Name: "users"})
	clicks := GroupBy(Stream(b, "clicks", texts), func(_, v string) string { return v }, serde.String).Count(Materialized{Name: "clicks"})
	both := LeftJoinTables(users, clicks, func(user string, n int64, found bool) string { return user }, serde.String)
	words := SelectKey(Stream(b, "words", texts), func(_, v string) string { return v }, serde.String)
	if by.Name != "" {
		words = words.Repartition(by)
	}
	JoinTable(words, both, func(_, w, row string) string { return w + row }, serde.String).To("out")
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// TestJoinedTopicsHaveTheSamePartitions: what is the application's own follows from the user's.
func TestJoinedTopicsHaveTheSamePartitions(t *testing.T) {
	app := &App{topology: joinedProgram(t, Repartitioned{}), cfg: Config{AppID: "app"}}
	topics := func(users, clicks, words int32) map[string]kafka.Topic {
		return map[string]kafka.Topic{"users": {Partitions: users}, "clicks": {Partitions: clicks}, "words": {Partitions: words}, "out": {Partitions: 1}}
	}
	wanted, err := app.internalTopics(topics(6, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app-clicks-repartition", "app-KSTREAM-KEY-SELECT-0000000012-repartition", "app-users-changelog", "app-clicks-changelog"} {
		if n := wanted[name].Partitions; n != 6 {
			t.Errorf("%s has %d partitions, want 6: %v", name, n, wanted)
		}
	}
	// However many words: the users' topic is given.
	if wanted, err = app.internalTopics(topics(6, 2, 8)); err != nil || wanted["app-KSTREAM-KEY-SELECT-0000000012-repartition"].Partitions != 6 {
		t.Error(wanted, err)
	}
	app.topology = joinedProgram(t, Repartitioned{Name: "by-word", Partitions: 6})
	if _, err = app.internalTopics(topics(6, 2, 8)); err != nil {
		t.Error(err)
	}
	app.topology = joinedProgram(t, Repartitioned{Name: "by-word", Partitions: 5})
	if _, err = app.internalTopics(topics(6, 2, 8)); err == nil || !strings.Contains(err.Error(), "by-word-repartition has 5") {
		t.Error(err)
	}
}

// TestJoinedRepartitionTopicsTakeTheLargest where no number is given.
func TestJoinedRepartitionTopicsTakeTheLargest(t *testing.T) {
	b := NewBuilder()
	count := func(topic string) *KTable[string, int64] {
		return GroupBy(Stream(b, topic, texts), func(_, v string) string { return v }, serde.String).Count(Materialized{Name: topic})
	}
	JoinTables(count("a"), count("b"), func(l, r int64) int64 { return l + r }, serde.Int64).ToStream().To("out")
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	app := &App{topology: topology, cfg: Config{AppID: "app"}}
	wanted, err := app.internalTopics(map[string]kafka.Topic{"a": {Partitions: 2}, "b": {Partitions: 5}})
	if err != nil || wanted["app-a-repartition"].Partitions != 5 || wanted["app-b-repartition"].Partitions != 5 || wanted["app-a-changelog"].Partitions != 5 {
		t.Error(wanted, err)
	}
}

// TestTopicsThatCannotBeJoined says which, and how many partitions they have.
func TestTopicsThatCannotBeJoined(t *testing.T) {
	b := NewBuilder()
	JoinTables(Table(b, "a", texts, Materialized{}), Table(b, "b", texts, Materialized{}), func(l, r string) string { return l + r }, serde.String)
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	app := &App{topology: topology, cfg: Config{AppID: "app"}}
	_, err = app.internalTopics(map[string]kafka.Topic{"a": {Partitions: 2}, "b": {Partitions: 5}})
	if err == nil || !strings.Contains(err.Error(), "a has 2, b has 5") {
		t.Error(err)
	}
}
