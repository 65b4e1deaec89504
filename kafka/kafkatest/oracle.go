package kafkatest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// What is in the broker, and what a test puts there, goes through franz-go itself and
// never through the client under test.

// put produces values to partition 0 of a topic, in one batch, outside a transaction.
func (s *suite) put(t *testing.T, topic string, values ...string) {
	t.Helper()
	s.putTo(t, topic, 0, values...)
}

func (s *suite) putTo(t *testing.T, topic string, partition int32, values ...string) {
	t.Helper()
	cl := s.broker.raw(t)
	noError(t, cl.ProduceSync(s.ctx(t), rawRecords(topic, partition, values)...).FirstErr())
}

// putTransaction produces values in a transaction and commits or aborts it.
func (s *suite) putTransaction(t *testing.T, topic string, commit bool, values ...string) {
	t.Helper()
	cl := s.openTransaction(t, topic, values...)
	noError(t, cl.EndTransaction(s.ctx(t), kgo.TransactionEndTry(commit)))
}

// openTransaction produces values in a transaction and leaves it open.
func (s *suite) openTransaction(t *testing.T, topic string, values ...string) *kgo.Client {
	t.Helper()
	cl := s.broker.raw(t, kgo.TransactionalID(s.broker.Name(t, "oracle")))
	noError(t, cl.BeginTransaction())
	noError(t, cl.ProduceSync(s.ctx(t), rawRecords(topic, 0, values)...).FirstErr())
	return cl
}

func rawRecords(topic string, partition int32, values []string) []*kgo.Record {
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)})
	}
	return records
}

// read gives all records of partition 0 that read_committed shows, up to the end of the
// log as it is now. It waits for open transactions.
func (s *suite) read(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	return s.readFrom(t, topic, 0)
}

func (s *suite) readFrom(t *testing.T, topic string, partition int32) []*kgo.Record {
	t.Helper()
	ctx := s.ctx(t)
	cl := s.broker.raw(t, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	noError(t, err)
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		t.Fatalf("end of %s-%d: %v", topic, partition, end.Err)
	}
	var records []*kgo.Record
	for next := int64(0); next < end.Offset; {
		fetches := cl.PollFetches(ctx)
		noError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records
}

// values gives the values of what read gives.
func (s *suite) values(t *testing.T, topic string) []string {
	t.Helper()
	var values []string
	for _, r := range s.read(t, topic) {
		values = append(values, string(r.Value))
	}
	return values
}

func (s *suite) wantValues(t *testing.T, topic string, want ...string) {
	t.Helper()
	if got := s.values(t, topic); !slices.Equal(got, want) {
		t.Fatalf("read_committed shows %s in %s, want %s", brief(got), topic, brief(want))
	}
}

// committed gives a group's offset of a partition, stable; -1 if there is none. It asks for
// just that partition: asked for all of a group, a broker leaves out those that have
// nothing but a pending offset, instead of calling them unstable.
func (s *suite) committed(t *testing.T, group string, tp kafka.TopicPartition) (int64, string) {
	t.Helper()
	cl := s.broker.raw(t)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = tp.Topic, []int32{tp.Partition}
	g.Topics = append(g.Topics, topic)
	req.Groups = append(req.Groups, g)
	offset, metadata := int64(-1), ""
	Eventually(t, patience, "the group's offset is stable", func() bool {
		resp, err := req.RequestWith(s.ctx(t), cl)
		if err != nil || len(resp.Groups) != 1 || len(resp.Groups[0].Topics) != 1 || len(resp.Groups[0].Topics[0].Partitions) != 1 {
			return false
		}
		p := resp.Groups[0].Topics[0].Partitions[0]
		if p.ErrorCode != 0 || resp.Groups[0].ErrorCode != 0 {
			return false
		}
		offset = p.Offset
		if p.Metadata != nil {
			metadata = *p.Metadata
		}
		return true
	})
	return offset, metadata
}

func (s *suite) wantCommitted(t *testing.T, group string, tp kafka.TopicPartition, want int64) {
	t.Helper()
	if got, _ := s.committed(t, group, tp); got != want {
		t.Fatalf("group %s has offset %d of %s, want %d", group, got, tp, want)
	}
}

// numbers gives "prefix-from" to "prefix-(to-1)".
func numbers(prefix string, from, to int) []string {
	var values []string
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprintf("%s-%d", prefix, i))
	}
	return values
}

func brief(values []string) string {
	if len(values) <= 20 {
		return fmt.Sprintf("%d %q", len(values), values)
	}
	return fmt.Sprintf("%d %q ... %q", len(values), values[:5], values[len(values)-5:])
}
