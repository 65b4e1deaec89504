package franz

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
)

func open(t *testing.T, b testbroker.Broker) *transactional {
	t.Helper()
	x, err := Client{}.NewTransactional(b.Settings(), kafka.TransactionalConfig{ID: b.Name(t, "txn")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := x.Close(ctx); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return x.(*transactional)
}

func limit(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// breaks closes the connection of every request of a kind, and counts them.
func breaks(c *kfake.Cluster, key kmsg.Key) *atomic.Int64 {
	var n atomic.Int64
	c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, errors.New("the connection breaks"), true
	})
	return &n
}

// A request that could take effect twice goes out once: its connection breaks, and the
// doubt is told at once, with most of the context left.
func TestSentOnce(t *testing.T) {
	member := kafka.Member{Group: "group", ID: "member", Generation: 1}
	t.Run("TxnOffsetCommit", func(t *testing.T) {
		b := testbroker.Kfake(t)
		topic := b.CreateTopic(t, "source", 1, nil)
		x := open(t, b)
		must(t, x.Init(limit(t, 10*time.Second)))
		must(t, x.Begin())
		n := breaks(b.Cluster, kmsg.TxnOffsetCommit)
		start := time.Now()
		err := x.SendOffsets(limit(t, 10*time.Second), member, []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: topic}, Offset: 1}})
		if !kafka.IsClass(err, kafka.ClassInDoubt) || n.Load() != 1 || time.Since(start) > 5*time.Second {
			t.Errorf("%d requests, %v, error %v", n.Load(), time.Since(start), err)
		}
	})
	t.Run("EndTxn", func(t *testing.T) {
		b := testbroker.Kfake(t)
		x := open(t, b)
		must(t, x.Init(limit(t, 10*time.Second)))
		must(t, x.Begin())
		x.offsets = true // as after SendOffsets
		n := breaks(b.Cluster, kmsg.EndTxn)
		start := time.Now()
		err := x.Commit(limit(t, 10*time.Second))
		if !kafka.IsClass(err, kafka.ClassInDoubt) || n.Load() != 1 || time.Since(start) > 5*time.Second {
			t.Errorf("%d requests, %v, error %v", n.Load(), time.Since(start), err)
		}
	})
}

// A member's snapshot goes out as it was given (K5), and topics by their ids.
func TestOffsetCommitRequest(t *testing.T) {
	b := testbroker.Kfake(t)
	topic := b.CreateTopic(t, "source", 2, nil)
	x := open(t, b)
	must(t, x.Init(limit(t, 10*time.Second)))
	must(t, x.Begin())
	var got *kmsg.TxnOffsetCommitRequest
	b.Cluster.ControlKey(int16(kmsg.TxnOffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		got = req.(*kmsg.TxnOffsetCommitRequest)
		return nil, nil, false
	})
	tp := func(p int32) kafka.TopicPartition { return kafka.TopicPartition{Topic: topic, Partition: p} }
	err := x.SendOffsets(limit(t, 10*time.Second), kafka.Member{Group: "g", InstanceID: "i", ID: "m", Generation: 7},
		[]kafka.CommittedOffset{{TopicPartition: tp(0), Offset: 3, Metadata: "x"}, {TopicPartition: tp(1), Offset: 4}})
	if err == nil {
		t.Fatal("a stranger's offsets were accepted")
	}
	if got.Group != "g" || got.MemberID != "m" || got.Generation != 7 || got.InstanceID == nil || *got.InstanceID != "i" {
		t.Errorf("member was sent as %+v", got)
	}
	if len(got.Topics) != 1 || got.Topics[0].TopicID == ([16]byte{}) || len(got.Topics[0].Partitions) != 2 {
		t.Errorf("topics were sent as %+v", got.Topics)
	}
}

// A broker that never has a coordinator for transactions is given up also without a
// context that ends.
func TestTransactionsUnavailable(t *testing.T) {
	b := testbroker.Kfake(t)
	x := open(t, b)
	x.unavailableAfter = 200 * time.Millisecond
	b.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, TxnID: x.cfg.ID, Err: kerr.CoordinatorNotAvailable, Count: -1})
	err := x.Init(context.Background())
	if !kafka.IsClass(err, kafka.ClassTransactionsUnavailable) || !strings.Contains(err.Error(), "transaction.state.log.replication.factor") {
		t.Errorf("error %v", err)
	}
}
