//go:build cgo

package embedded

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/confluent"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// Consumer settings that cannot go with state are refused, all at once, with the reason.
func TestConfluentSettings(t *testing.T) {
	w := &world{t: t, b: testbroker.Kfake(t), app: "app"}
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.Outputs = nil
	_, err := confluent.Open(context.Background(), &kafka.ConfigMap{"bootstrap.servers": w.b.Addrs[0], "enable.auto.commit": true,
		"isolation.level": "read_uncommitted", "auto.offset.reset": "error", "go.events.channel.enable": "true"}, cfg)
	wants(t, err, "enable.auto.commit", "committed without its state", "isolation.level", "auto.offset.reset", "group.id is missing", "go.events.channel.enable")
	_, err = confluent.Open(context.Background(), nil, cfg)
	wants(t, err, "nil")
	for _, key := range []string{"sasl.mechanism", "sasl.mechanisms"} {
		_, err = confluent.Open(context.Background(), &kafka.ConfigMap{"bootstrap.servers": w.b.Addrs[0], "group.id": "g", key: "OAUTHBEARER"}, cfg)
		wants(t, err, "OAUTHBEARER", "SetOAuthBearerToken", "sasl.oauthbearer.method=oidc", "embedded/franz")
	}

	user := kafka.ConfigMap{"bootstrap.servers": w.b.Addrs[0], "group.id": "g", "enable.auto.commit": "false"}
	h, err := confluent.Open(context.Background(), &user, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(user) != 3 {
		t.Errorf("the user's map was changed: %v", user)
	}
	topic := "t"
	never := func(*embedded.Task) error { t.Error("called"); return nil }
	wants(t, h.Process(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic}}, never), "t-0@0", "not assigned", "callback")
	wants(t, h.Process(nil, never), "no message")
	wants(t, h.Process(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Error: kafka.NewError(kafka.ErrAllBrokersDown, "", false)}}, never), "not a message")
	wants(t, h.Rebalance(nil, kafka.AssignedPartitions{}), "another consumer")
	w.close(confluentLoop{h})
}

// A consumer that was subscribed without the host's callback gives messages of partitions that the host knows nothing of.
func TestCallbackNotWired(t *testing.T) {
	w := newWorld(t, door{name: "confluent"})
	w.produce(10)
	h, err := confluent.Open(context.Background(), &kafka.ConfigMap{"bootstrap.servers": w.b.Addrs[0], "group.id": w.app + "-group", "auto.offset.reset": "earliest", "log_level": 0}, w.config(t.TempDir(), embedded.AtLeastOnce))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close(confluentLoop{h})
	// With the start of its choice, which the host otherwise gives: at "error", which it has, Poll would only say so.
	err = h.Consumer().SubscribeTopics([]string{w.in}, func(c *kafka.Consumer, e kafka.Event) error {
		a, ok := e.(kafka.AssignedPartitions)
		if !ok {
			return c.Unassign()
		}
		for i := range a.Partitions {
			a.Partitions[i].Offset = kafka.OffsetBeginning
		}
		return c.Assign(a.Partitions)
	})
	if err != nil {
		t.Fatal(err)
	}
	var got *kafka.Message
	eventually(t, 30e9, "a message comes", func() bool {
		m, ok := h.Consumer().Poll(100).(*kafka.Message)
		got = m
		return ok
	})
	err = h.Process(got, func(*embedded.Task) error { t.Error("called"); return nil })
	if !errors.Is(err, embedded.ErrNotAssigned) {
		t.Error(err)
	}
	wants(t, err, w.in, "rebalance callback")
}

// A consumer that its user has closed is of no use to the host, which says so.
func TestConsumerClosed(t *testing.T) {
	w := newWorld(t, doors[slices.IndexFunc(doors, func(d door) bool { return d.name == "confluent-range" })])
	w.produce(10)
	l := w.start(w.config(t.TempDir(), embedded.AtLeastOnce)).(confluentLoop)
	x := w.watch()
	w.until(l, func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }, "all records are counted", func() bool { return x.reached(w.seq) })
	if err := l.Consumer().Close(); err != nil {
		t.Fatal(err)
	}
	wants(t, l.Err(), "consumer was closed", "host's Close")
	wants(t, l.Process(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &w.in}}, nil), "consumer was closed")
	w.close(l)
	if !errors.Is(l.Err(), embedded.ErrClosed) {
		t.Error(l.Err())
	}
	saysClosed(t, "process", l.Process(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &w.in}}, nil))
	saysClosed(t, "commit", l.Commit(context.Background()))
}
