package kafkatest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/kfakefetch"
	"github.com/tidemark-streams/tidemark/kafka"
)

// Broker is a Kafka cluster that tests run against.
type Broker struct {
	// Addrs are the bootstrap addresses, host:port.
	Addrs []string
	// Cluster gives access to an embedded cluster, for faults; nil for a real broker.
	Cluster *kfake.Cluster
	// Network lies in front of an embedded cluster; nil for a real broker.
	Network *Network
}

// Embedded starts an embedded one-node cluster for the duration of a test: data in the
// test's temporary directory, no topics created by the way, short group sessions allowed.
// Options are applied after these.
func Embedded(t testing.TB, opts ...kfake.Opt) Broker {
	t.Helper()
	network := &Network{}
	all := append([]kfake.Opt{
		kfake.NumBrokers(1),
		kfake.DataDir(t.TempDir()),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
		kfake.ListenFn(network.listen),
	}, opts...)
	cluster, err := kfake.NewCluster(all...)
	if err != nil {
		t.Fatalf("start the embedded cluster: %v", err)
	}
	t.Cleanup(cluster.Close)
	kfakefetch.ByPartition(cluster)
	return Broker{Addrs: cluster.ListenAddrs(), Cluster: cluster, Network: network}
}

// Settings are client settings for the broker that log nothing.
func (b Broker) Settings() kafka.Settings {
	return kafka.Settings{Brokers: b.Addrs, Logger: slog.New(slog.DiscardHandler)}
}

// Name gives a topic, group or transactional id that nobody else uses: the prefix and
// some random digits.
func (b Broker) Name(_ testing.TB, prefix string) string {
	return strings.ReplaceAll(prefix, "/", "-") + "-" + strings.ToLower(rand.Text()[:12])
}

// CreateTopic creates a topic with a name from [Broker.Name], and gives that name.
func (b Broker) CreateTopic(t testing.TB, prefix string, partitions int32, configs map[string]string) string {
	t.Helper()
	name := b.Name(t, prefix)
	cl := b.raw(t)
	values := make(map[string]*string, len(configs))
	for k, v := range configs {
		values[k] = &v
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, partitions, 1, values, name); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	Eventually(t, 90*time.Second, "the topic's partitions have leaders", func() bool {
		topics, err := adm.ListTopics(ctx, name)
		if err != nil || len(topics[name].Partitions) != int(partitions) {
			return false
		}
		for _, p := range topics[name].Partitions {
			if p.Err != nil || p.Leader < 0 {
				return false
			}
		}
		return true
	})
	return name
}

// raw gives a client of the suite's own, closed with the test.
func (b Broker) raw(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs...), kgo.DisableClientMetrics(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Eventually polls a condition until it holds, and fails the test after the time given.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("after %v it is still not true that %s", within, what)
		case <-tick.C:
		}
	}
}
