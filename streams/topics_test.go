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

// awayAdmin does not answer the first question of each kind, and has made what it was asked to by then.
type awayAdmin struct {
	slowAdmin
	asked map[string]int
}

func (a *awayAdmin) away(what string, class kafka.ErrorClass) error {
	if a.asked[what]++; a.asked[what] > 1 {
		return nil
	}
	return &kafka.Error{Class: class, Op: what}
}

func (a *awayAdmin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	if err := a.away("describe topics", kafka.ClassTimeout); err != nil {
		return nil, err
	}
	return a.slowAdmin.Topics(ctx, names...)
}

func (a *awayAdmin) TopicConfigs(ctx context.Context, name string) (map[string]string, error) {
	if err := a.away("describe configuration", kafka.ClassRetriable); err != nil {
		return nil, err
	}
	return a.slowAdmin.TopicConfigs(ctx, name)
}

func (a *awayAdmin) CreateTopics(ctx context.Context, topics ...kafka.NewTopic) error {
	if err := a.away("create topics", kafka.ClassUnreachable); err != nil {
		return err
	}
	return a.slowAdmin.CreateTopics(ctx, topics...)
}

// A broker that leaves a question unanswered, while it restarts or is busy, does not end the start.
func TestStartAsksAgain(t *testing.T) {
	app := &App{log: slog.New(slog.DiscardHandler)}
	wanted := map[string]kafka.NewTopic{"app-s-changelog": {Name: "app-s-changelog", Partitions: 2, Configs: map[string]string{"cleanup.policy": "compact"}}}
	away := &awayAdmin{asked: map[string]int{}}
	have, err := app.createMissing(t.Context(), askedAgain{away}, wanted)
	if err != nil || have["app-s-changelog"].Partitions != 2 {
		t.Errorf("%v, %v", have, err)
	}
	for _, what := range []string{"describe topics", "describe configuration", "create topics"} {
		if away.asked[what] < 2 {
			t.Errorf("%s was asked %d times", what, away.asked[what])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.createMissing(ctx, askedAgain{&awayAdmin{asked: map[string]int{}}}, wanted); !kafka.IsClass(err, kafka.ClassTimeout) {
		t.Errorf("when the time is over: %v", err)
	}
}
