package testbroker

import (
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// Broker is a broker for a test.
type Broker = kafkatest.Broker

// Kfake starts an embedded cluster for the duration of the test, see
// [kafkatest.Embedded]. Broker.Cluster injects faults.
func Kfake(t testing.TB, opts ...kfake.Opt) Broker {
	t.Helper()
	return kafkatest.Embedded(t, opts...)
}

// Real gives the real broker that TIDEMARK_TEST_BROKERS names. Without one it skips the
// test, or fails it if TIDEMARK_REQUIRE_REAL is set.
func Real(t testing.TB) Broker {
	t.Helper()
	addrs := os.Getenv("TIDEMARK_TEST_BROKERS")
	if addrs == "" {
		if os.Getenv("TIDEMARK_REQUIRE_REAL") != "" {
			t.Fatal("TIDEMARK_REQUIRE_REAL is set, but TIDEMARK_TEST_BROKERS names no broker")
		}
		t.Skip("no real broker: TIDEMARK_TEST_BROKERS is empty")
	}
	return Broker{Addrs: strings.Split(addrs, ",")}
}

// Kinds are the brokers of [Each].
var Kinds = []struct {
	Name string
	Get  func(testing.TB) Broker
}{
	{"kfake", func(t testing.TB) Broker { return Kfake(t) }},
	{"kafka", Real},
}

// Each runs a subtest on the embedded broker and one on the real broker, which is skipped
// where there is none.
func Each(t *testing.T, test func(t *testing.T, b Broker)) {
	t.Helper()
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) { test(t, k.Get(t)) })
	}
}
