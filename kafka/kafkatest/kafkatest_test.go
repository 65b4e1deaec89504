package kafkatest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	var b Broker
	seen := map[string]bool{}
	for range 1000 {
		n := b.Name(t, "a/b")
		if seen[n] || n[:4] != "a-b-" {
			t.Fatalf("name %q", n)
		}
		seen[n] = true
	}
}

// A lost answer is lost for the client only: the cluster has done what was asked.
func TestNetwork(t *testing.T) {
	b := Embedded(t)
	topic := b.CreateTopic(t, "t", 1, nil)
	cl := b.raw(t)
	produce := func(v string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		done := make(chan error, 1)
		cl.Produce(context.Background(), &kgo.Record{Topic: topic, Value: []byte(v)}, func(_ *kgo.Record, err error) { done <- err })
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := produce("a", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	b.Network.LoseAnswers()
	if err := produce("b", 200*time.Millisecond); err == nil {
		t.Fatal("an answer came through")
	}
	if n := b.Cluster.PartitionInfo(topic, 0).HighWatermark; n != 2 {
		t.Fatalf("the cluster has %d records, want 2", n)
	}
	b.Network.Heal()
	if err := produce("c", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	b.Network.Break()
	if err := produce("d", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if n := b.Cluster.PartitionInfo(topic, 0).HighWatermark; n != 4 {
		t.Fatalf("the cluster has %d records, want 4: a repeated one was written twice", n)
	}
}
