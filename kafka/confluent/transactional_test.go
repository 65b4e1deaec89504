//go:build cgo

package confluent

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

func newTransactional(t *testing.T, b kafkatest.Broker, id string) kafka.Transactional {
	t.Helper()
	x, err := Client{}.NewTransactional(b.Settings(), kafka.TransactionalConfig{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, x) })
	must(t, x.Init(within(t, 20*time.Second)))
	return x
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newMember(t *testing.T, b kafkatest.Broker, group, topic string) kafka.Membership {
	t.Helper()
	m, err := Client{}.NewMembership(b.Settings(), kafka.MembershipConfig{Group: group, Topic: topic,
		InstanceID: b.Name(t, "instance"), HeartbeatInterval: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, m) })
	kafkatest.Eventually(t, 90*time.Second, "the member has joined", func() bool { return m.State().Member.ID != "" })
	return m
}

// An old generation costs the transaction only when the broker has to say so: librdkafka
// has no way on in a transaction whose offsets were refused.
func TestOldGeneration(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	placement, source := b.CreateTopic(t, "placement", 1, nil), b.CreateTopic(t, "source", 1, nil)
	m := newMember(t, b, "group", placement)
	old := m.State().Member
	newMember(t, b, "group", placement)
	kafkatest.Eventually(t, 90*time.Second, "there is a new generation", func() bool { return m.State().Member.Generation > old.Generation })
	x := newTransactional(t, b, "txn")
	offsets := []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: source}, Offset: 5}}
	ctx := within(t, 20*time.Second)
	must(t, x.Begin())
	if err := x.SendOffsets(ctx, old, offsets); !kafka.IsClass(err, kafka.ClassIllegalGeneration) {
		t.Fatalf("the old generation: %v", err)
	}
	must(t, x.SendOffsets(ctx, m.State().Member, offsets))
	must(t, x.Commit(ctx))

	fault := b.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.IllegalGeneration, Count: 1})
	defer fault.Remove()
	must(t, x.Begin())
	if err := x.SendOffsets(ctx, m.State().Member, offsets); !kafka.IsClass(err, kafka.ClassIllegalGeneration) {
		t.Fatalf("a generation that the broker calls old: %v", err)
	}
	if err := x.SendOffsets(ctx, m.State().Member, offsets); !kafka.IsClass(err, kafka.ClassAbortable) {
		t.Fatalf("repeated in the same transaction: %v", err)
	}
	must(t, x.Abort(ctx))
	must(t, x.Begin())
	must(t, x.SendOffsets(ctx, m.State().Member, offsets))
	must(t, x.Commit(ctx))
}

// SendOffsets of librdkafka looks at no time limit while the group coordinator is away, and
// the instance cannot be destroyed before it returns.
func TestOffsetsWithoutCoordinatorAreGivenUp(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	source := b.CreateTopic(t, "source", 1, nil)
	m := newMember(t, b, "group", b.CreateTopic(t, "placement", 1, nil))
	x := newTransactional(t, b, "txn")
	member := m.State().Member
	fault := b.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.NotCoordinator, Count: -1})
	defer fault.Remove()
	must(t, x.Begin())
	ctx, cancel := context.WithCancel(context.Background()) // no deadline: only the watchdog sees the end
	defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	start := time.Now()
	err := x.SendOffsets(ctx, member, []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: source}, Offset: 5}})
	if !kafka.IsClass(err, kafka.ClassInDoubt) || time.Since(start) > 2*time.Second {
		t.Fatalf("after %v: %v", time.Since(start), err)
	}
	if err := x.Begin(); !kafka.IsClass(err, kafka.ClassInDoubt) {
		t.Errorf("Begin in doubt: %v", err)
	}
	fault.Remove()
	must(t, x.Init(within(t, 20*time.Second)))
	must(t, x.Begin())
	must(t, x.Commit(within(t, 20*time.Second)))
}

// A record that is refused before librdkafka sees it must forbid the commit too.
func TestRefusedRecordForbidsTheCommit(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	topic := b.CreateTopic(t, "topic", 1, nil)
	x := newTransactional(t, b, "txn")
	ctx := within(t, 20*time.Second)
	must(t, x.Begin())
	var reports atomic.Int64
	report := func(d kafka.Delivery) {
		reports.Add(1)
		if !kafka.IsClass(d.Err, kafka.ClassTooLarge) {
			t.Errorf("reported as %v", d.Err)
		}
	}
	big := make([]byte, 101<<20) // above message.max.bytes
	must(t, x.Send(ctx, []kafka.Record{{Topic: topic, Timestamp: 1}, {Topic: topic, Timestamp: 1, Value: big}, {Topic: topic, Timestamp: 1}}, report))
	if err := x.Commit(ctx); !kafka.IsClass(err, kafka.ClassAbortable) {
		t.Fatalf("commit: %v", err)
	}
	must(t, x.Abort(ctx))
	if n := reports.Load(); n != 1 {
		t.Errorf("%d reports", n)
	}
	must(t, x.Begin())
	must(t, x.Commit(ctx))
	if high := b.Cluster.PartitionInfo(topic, 0).HighWatermark; high > 3 {
		t.Errorf("the log reaches to %d", high)
	}
}

func TestRecordsThatLibrdkafkaWouldChangeAreRefused(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	p, err := Client{}.NewProducer(b.Settings(), kafka.ProducerConfig{})
	must(t, err)
	defer closed(t, p)
	for text, r := range map[string]kafka.Record{
		"timestamp 0":          {Topic: "t"},
		"9300000000000 ms":     {Topic: "t", Timestamp: 9_300_000_000_000},
		"-9300000000000 ms":    {Topic: "t", Timestamp: -9_300_000_000_000},
		"zero byte":            {Topic: "t", Timestamp: 1, Headers: []kafka.Header{{Key: "a\x00b"}}},
		"topic name of 250":    {Topic: strings.Repeat("x", 250), Timestamp: 1},
		"topic name of 600":    {Topic: strings.Repeat("x", 600), Timestamp: 1}, // would panic in the binding
		"partition -1 of":      {Topic: "t", Partition: -1, Timestamp: 1},
		"topic name of 0 byte": {Timestamp: 1},
	} {
		err := p.Send(context.Background(), []kafka.Record{r}, func(kafka.Delivery) { t.Error("reported") })
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	x := newTransactional(t, b, "txn")
	m := newMember(t, b, "group", b.CreateTopic(t, "placement", 1, nil))
	must(t, x.Begin())
	for text, o := range map[string]kafka.CommittedOffset{
		"offset -1": {TopicPartition: kafka.TopicPartition{Topic: "t"}, Offset: -1}, // would be left out
		"zero byte": {TopicPartition: kafka.TopicPartition{Topic: "t"}, Metadata: "a\x00b"},
	} {
		err := x.SendOffsets(context.Background(), m.State().Member, []kafka.CommittedOffset{o})
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	must(t, x.Commit(within(t, 20*time.Second)))
}

// A later Send must not begin before an earlier, waiting one of the same producer has ended,
// and reports that come late find their Sends: many small ones over many partitions.
func TestReportsBelongToTheirSends(t *testing.T) {
	t.Parallel()
	b := kafkatest.Embedded(t)
	topic := b.CreateTopic(t, "topic", 8, nil)
	p, err := Client{}.NewProducer(b.Settings(), kafka.ProducerConfig{MaxBufferedRecords: 50})
	must(t, err)
	const sends = 500
	type got struct {
		send int
		next []kafka.PartitionOffset
		err  error
	}
	results := make(chan got, sends)
	want := map[int32]int64{}
	wants := make([]map[int32]int64, sends)
	for i := range sends {
		wants[i] = map[int32]int64{}
		records := make([]kafka.Record, i%7+1)
		for j := range records {
			partition := int32((i*3 + j*5) % 8)
			records[j] = kafka.Record{Topic: topic, Partition: partition, Timestamp: 1}
			want[partition]++
			wants[i][partition] = want[partition]
		}
		must(t, p.Send(within(t, 20*time.Second), records, func(d kafka.Delivery) {
			results <- got{i, append([]kafka.PartitionOffset(nil), d.Next...), d.Err}
		}))
	}
	closed(t, p)
	for range sends {
		r := <-results
		if r.err != nil || len(r.next) != len(wants[r.send]) {
			t.Fatalf("send %d: %+v", r.send, r)
		}
		for _, n := range r.next {
			if n.Offset != wants[r.send][n.Partition] {
				t.Fatalf("send %d: next of %s is %d, want %d", r.send, n.TopicPartition, n.Offset, wants[r.send][n.Partition])
			}
		}
	}
}
