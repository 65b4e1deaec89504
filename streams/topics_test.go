package streams

import (
	"context"
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// slowAdmin belongs to a cluster where another process has just created the topics: they exist,
// and the brokers' metadata shows them a few looks later.
type slowAdmin struct {
	kafka.Admin
	looks int
}

func (a *slowAdmin) CreateTopics(context.Context, ...kafka.NewTopic) error {
	return &kafka.Error{Class: kafka.ClassTopicExists, Op: "create topic"}
}

func (a *slowAdmin) Topics(_ context.Context, names ...string) (map[string]kafka.Topic, error) {
	topics := map[string]kafka.Topic{}
	if a.looks++; a.looks > 3 {
		for _, name := range names {
			topics[name] = kafka.Topic{Name: name, Partitions: 2}
		}
	}
	return topics, nil
}

func (a *slowAdmin) TopicConfigs(context.Context, string) (map[string]string, error) {
	return map[string]string{"cleanup.policy": "compact"}, nil
}

// Two processes that start at once create the same topics: the one that comes second waits
// until it sees them, and checks them as any that exist.
func TestTopicsCreatedByAnotherProcess(t *testing.T) {
	app := &App{log: slog.New(slog.DiscardHandler)}
	wanted := map[string]kafka.NewTopic{"app-s-changelog": {Name: "app-s-changelog", Partitions: 2, Configs: map[string]string{"cleanup.policy": "compact"}}}
	have, err := app.createMissing(t.Context(), &slowAdmin{}, wanted)
	if err != nil || have["app-s-changelog"].Partitions != 2 {
		t.Errorf("%v, %v", have, err)
	}
	wanted["app-s-changelog"] = kafka.NewTopic{Name: "app-s-changelog", Partitions: 4}
	if _, err := app.createMissing(t.Context(), &slowAdmin{}, wanted); err == nil {
		t.Error("a topic with another number of partitions was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.createMissing(ctx, &slowAdmin{looks: -1000}, wanted); err == nil {
		t.Error("a topic that never shows up was taken")
	}
}
