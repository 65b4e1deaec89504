//go:build cgo

package confluent_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// A consumer with a fatal error is left behind, because its Close would not return; the
// binding's goroutine that waits for its log lines cannot be ended otherwise. The same
// goroutine of an instance that somebody only forgot to close is still found: it has one of
// this package beside it, which is not ignored.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/confluentinc/confluent-kafka-go/v2/kafka.(*handle).pollLogEvents"))
}

func TestConformance(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		t.Parallel()
		kafkatest.Run(t, confluent.Client{}, b)
	})
}
