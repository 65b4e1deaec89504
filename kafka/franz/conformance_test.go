package franz_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		t.Parallel()
		kafkatest.Run(t, franz.Client{}, b)
	})
}

// Transactions of version 1: no epoch of their own, partitions are added by request.
func TestConformanceOldBroker(t *testing.T) {
	t.Parallel()
	kafkatest.Run(t, franz.Client{}, testbroker.Kfake(t, kfake.MaxVersions(kversion.V3_6_0())),
		"transactional", "fencing", "offsets", "doubt")
}

func TestConformanceThreeBrokers(t *testing.T) {
	t.Parallel()
	kafkatest.Run(t, franz.Client{}, testbroker.Kfake(t, kfake.NumBrokers(3)),
		"consumer", "producer", "transactional", "offsets", "membership", "admin")
}
