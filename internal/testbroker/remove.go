package testbroker

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// RemoveTopic deletes a topic, and waits until it is gone: a real broker goes on showing it for a moment.
func RemoveTopic(t testing.TB, admin kafka.Admin, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := admin.DeleteTopics(ctx, topic); err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, 90*time.Second, "the topic is gone", func() bool {
		now, err := admin.Topics(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		return len(now) == 0
	})
}
