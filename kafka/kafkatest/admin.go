package kafkatest

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

var adminTests = []test{
	{"topics", false, adminTopics},
	{"create, delete, create again", false, adminRecreates},
	{"configurations", false, adminConfigs},
	{"configuration of a broker", false, adminBrokerConfigs},
	{"offsets of a log", false, adminListOffsets},
	{"offsets of what does not exist", false, adminListUnknown},
	{"offsets around transactions", false, adminTransactionOffsets},
	{"committed offsets", false, adminCommitted},
	{"committed offsets wait for transactions", false, adminCommittedStable},
	{"committed offsets while the coordinator moves", true, adminCommittedElsewhere},
	{"groups", false, adminGroups},
	{"groups of a cluster without a coordinator yet", true, adminGroupsEarly},
	{"groups whose coordinator answers when nobody waits any more", true, adminGroupsLate},
	{"delete records", false, adminDeleteRecords},
	{"closed", false, adminClosed},
}

func adminTopics(t *testing.T, s *suite) {
	a := s.admin(t)
	one, two := s.broker.CreateTopic(t, "one", 1, nil), s.broker.CreateTopic(t, "two", 3, nil)
	missing := s.broker.Name(t, "missing")
	topics, err := a.Topics(s.ctx(t), one, two, missing)
	noError(t, err)
	if len(topics) != 2 || topics[one].Name != one || topics[one].Partitions != 1 || topics[two].Partitions != 3 {
		t.Fatalf("topics %+v", topics)
	}
	if topics[one].ID == topics[two].ID || topics[one].ID == (kafka.TopicID{}) {
		t.Errorf("topic ids %s and %s", topics[one].ID, topics[two].ID)
	}
	none, err := a.Topics(s.ctx(t))
	noError(t, err)
	if len(none) != 0 {
		t.Errorf("no names gave %d topics", len(none))
	}
}

func adminRecreates(t *testing.T, s *suite) {
	a := s.admin(t)
	one, two := s.broker.Name(t, "one"), s.broker.Name(t, "two")
	noError(t, a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: one, Partitions: 4, Replication: 1}, kafka.NewTopic{Name: two, Partitions: 1, Replication: -1}))
	// it was waited for: both are there with all partitions, at once and for every part
	topics, err := a.Topics(s.ctx(t), one, two)
	noError(t, err)
	if topics[one].Partitions != 4 || topics[two].Partitions != 1 {
		t.Fatalf("right after the creation: %+v", topics)
	}
	p := s.producer(t, kafka.ProducerConfig{})
	r := newReports()
	noError(t, p.Send(s.ctx(t), []kafka.Record{{Topic: one, Partition: 3, Timestamp: 1}}, r.one()))
	r.wait(t)
	noError(t, r.err(0))

	err = a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: one, Partitions: 4, Replication: 1})
	wantClass(t, err, kafka.ClassTopicExists)
	if !strings.Contains(err.Error(), one) {
		t.Errorf("the error does not name the topic: %v", err)
	}
	if s.broker.Cluster == nil { // the embedded one takes any name and value
		wantClass(t, a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: "not a name!", Partitions: 1, Replication: 1}), kafka.ClassInvalid)
		wantClass(t, a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: s.broker.Name(t, "x"), Partitions: 1, Replication: 1,
			Configs: map[string]string{"cleanup.policy": "nonsense"}}), kafka.ClassInvalid)
	}

	noError(t, a.DeleteTopics(s.ctx(t), one, s.broker.Name(t, "missing")))
	gone := func() bool {
		now, err := a.Topics(s.ctx(t), one)
		noError(t, err)
		return len(now) == 0
	}
	Eventually(t, patience, "the topic is gone", gone)
	noError(t, a.DeleteTopics(s.ctx(t), one))
	Eventually(t, patience, "the topic can be created again", func() bool { // deletion goes on behind the answer
		err := a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: one, Partitions: 2, Replication: 1})
		if err != nil {
			wantClass(t, err, kafka.ClassTopicExists)
		}
		return err == nil
	})
	again, err := a.Topics(s.ctx(t), one)
	noError(t, err)
	if again[one].Partitions != 2 || again[one].ID == topics[one].ID {
		t.Errorf("the topic was %+v and is %+v", topics[one], again[one])
	}
}

func adminConfigs(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.Name(t, "configs")
	noError(t, a.CreateTopics(s.ctx(t), kafka.NewTopic{Name: topic, Partitions: 1, Replication: 1,
		Configs: map[string]string{"cleanup.policy": "compact", "max.message.bytes": "12345"}}))
	configs, err := a.TopicConfigs(s.ctx(t), topic)
	noError(t, err)
	if configs["cleanup.policy"] != "compact" || configs["max.message.bytes"] != "12345" {
		t.Errorf("what was set came back as %q and %q", configs["cleanup.policy"], configs["max.message.bytes"])
	}
	if _, ok := configs["retention.ms"]; !ok {
		t.Errorf("a default is missing from %v", configs)
	}
	_, err = a.TopicConfigs(s.ctx(t), s.broker.Name(t, "missing"))
	wantClass(t, err, kafka.ClassUnknownTopic)
}

func adminBrokerConfigs(t *testing.T, s *suite) {
	a, ok := s.admin(t).(kafka.BrokerConfigs)
	if !ok {
		t.Fatal("the client cannot tell it")
	}
	configs, err := a.BrokerConfigs(s.ctx(t))
	noError(t, err)
	if n, err := strconv.Atoi(configs["offsets.retention.minutes"]); err != nil || n <= 0 {
		t.Errorf("offsets.retention.minutes is %q", configs["offsets.retention.minutes"])
	}
}

// list gives the offset of partition 0 by each spec.
func list(t *testing.T, s *suite, a kafka.Admin, topic string, specs ...kafka.OffsetSpec) []int64 {
	t.Helper()
	tp := kafka.TopicPartition{Topic: topic}
	var got []int64
	for _, spec := range specs {
		offsets, err := a.ListOffsets(s.ctx(t), spec, tp)
		noError(t, err)
		o, ok := offsets[tp]
		if !ok || len(offsets) != 1 {
			t.Fatalf("spec %d gave %v", spec, offsets)
		}
		got = append(got, o)
	}
	return got
}

func wantOffsets(t *testing.T, got []int64, want ...int64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("offsets %v, want %v", got, want)
		}
	}
}

func adminListOffsets(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "list", 1, nil)
	wantOffsets(t, list(t, s, a, topic, kafka.Earliest, kafka.HighWatermark, kafka.LastStable, 0, 1_000), 0, 0, 0, 0, 0)
	cl := s.broker.raw(t)
	for i := range 10 {
		noError(t, cl.ProduceSync(s.ctx(t), &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(int64(1000 * (i + 1))), Value: []byte("v")}).FirstErr())
	}
	wantOffsets(t, list(t, s, a, topic, kafka.Earliest, kafka.HighWatermark, kafka.LastStable), 0, 10, 10)
	wantOffsets(t, list(t, s, a, topic, 0, 1000, 1001, 5000, 10_000, 10_001), 0, 0, 1, 4, 9, 10)

	none, err := a.ListOffsets(s.ctx(t), kafka.Earliest)
	noError(t, err)
	if len(none) != 0 {
		t.Errorf("no partitions gave %v", none)
	}
}

func adminListUnknown(t *testing.T, s *suite) {
	a := s.admin(t)
	topic, missing := s.broker.CreateTopic(t, "known", 1, nil), s.broker.Name(t, "missing")
	for _, bad := range []kafka.TopicPartition{{Topic: topic, Partition: 7}, {Topic: missing}} {
		_, err := a.ListOffsets(s.ctx(t), kafka.HighWatermark, kafka.TopicPartition{Topic: topic}, bad)
		wantClass(t, err, kafka.ClassUnknownTopic)
		if !strings.Contains(err.Error(), bad.String()) {
			t.Errorf("the error does not name %s: %v", bad, err)
		}
	}
}

func adminTransactionOffsets(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "list", 1, nil)
	s.put(t, topic, "a", "b")
	open := s.openTransaction(t, topic, "c")
	s.put(t, topic, "d")
	wantOffsets(t, list(t, s, a, topic, kafka.HighWatermark, kafka.LastStable), 4, 2)
	noError(t, open.EndTransaction(s.ctx(t), kgo.TryCommit))
	Eventually(t, patience, "both ends are behind the marker", func() bool {
		got := list(t, s, a, topic, kafka.HighWatermark, kafka.LastStable)
		return got[0] == 5 && got[1] == 5
	})
}

func adminCommitted(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "source", 3, nil)
	tp := func(p int32) kafka.TopicPartition { return kafka.TopicPartition{Topic: topic, Partition: p} }
	none, err := a.CommittedOffsets(s.ctx(t), s.broker.Name(t, "nobody"), tp(0), tp(1))
	noError(t, err)
	if len(none) != 0 {
		t.Errorf("an unknown group has offsets %v", none)
	}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, []kafka.CommittedOffset{
		{TopicPartition: tp(0), Offset: 7, Metadata: "m+/="}, {TopicPartition: tp(2), Offset: 0}}))
	noError(t, x.Commit(s.ctx(t)))
	got, err := a.CommittedOffsets(s.ctx(t), member.Group, tp(0), tp(1), tp(2))
	noError(t, err)
	if len(got) != 2 || got[tp(0)] != (kafka.CommittedOffset{TopicPartition: tp(0), Offset: 7, Metadata: "m+/="}) ||
		got[tp(2)] != (kafka.CommittedOffset{TopicPartition: tp(2)}) {
		t.Errorf("committed offsets %+v", got)
	}
	some, err := a.CommittedOffsets(s.ctx(t), member.Group, tp(2))
	noError(t, err)
	if len(some) != 1 {
		t.Errorf("one partition was asked for, got %v", some)
	}
	empty, err := a.CommittedOffsets(s.ctx(t), member.Group)
	noError(t, err)
	if len(empty) != 0 {
		t.Errorf("no partition was asked for, got %v", empty)
	}
}

func adminCommittedStable(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "source", 1, nil)
	tp := kafka.TopicPartition{Topic: topic}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, offset(topic, 3)))
	err := bounded(t, 500*time.Millisecond, func(ctx context.Context) error {
		got, err := a.CommittedOffsets(ctx, member.Group, tp)
		if err == nil {
			t.Errorf("pending offsets were not waited for: %v", got)
		}
		return err
	})
	wantClass(t, err, kafka.ClassTimeout)
	type answer struct {
		offsets map[kafka.TopicPartition]kafka.CommittedOffset
		err     error
	}
	answers := make(chan answer, 1)
	ctx := s.ctx(t)
	go func() {
		offsets, err := a.CommittedOffsets(ctx, member.Group, tp)
		answers <- answer{offsets, err}
	}()
	noError(t, x.Commit(s.ctx(t)))
	got := <-answers
	noError(t, got.err)
	if got.offsets[tp].Offset != 3 {
		t.Errorf("after the commit the offset is %v, want 3", got.offsets)
	}
}

func adminGroups(t *testing.T, s *suite) {
	a := s.admin(t)
	m, member := s.member(t)
	g, err := a.DescribeGroup(s.ctx(t), member.Group)
	noError(t, err)
	if g.State != "Stable" || len(g.Members) != 1 || g.Members[0].ID != member.ID || g.Members[0].InstanceID != member.InstanceID ||
		!strings.HasPrefix(g.Members[0].ClientID, "tidemark") || g.Members[0].Host == "" {
		t.Errorf("group %+v, member %+v", g, member)
	}
	noError(t, m.Leave(s.ctx(t)))
	Eventually(t, patience, "the group is empty", func() bool {
		g, err := a.DescribeGroup(s.ctx(t), member.Group)
		noError(t, err)
		return len(g.Members) == 0 && (g.State == "Empty" || g.State == "Dead")
	})
	g, err = a.DescribeGroup(s.ctx(t), s.broker.Name(t, "nobody"))
	noError(t, err)
	if g.State != "Dead" || len(g.Members) != 0 {
		t.Errorf("a group that does not exist is %+v, want state Dead", g)
	}
}

func adminDeleteRecords(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "delete", 1, nil)
	s.put(t, topic, numbers("v", 0, 10)...)
	tp := kafka.TopicPartition{Topic: topic}
	noError(t, a.DeleteRecords(s.ctx(t), map[kafka.TopicPartition]int64{tp: 4}))
	wantOffsets(t, list(t, s, a, topic, kafka.Earliest, kafka.HighWatermark), 4, 10)
	wantClass(t, a.DeleteRecords(s.ctx(t), map[kafka.TopicPartition]int64{tp: 11}), kafka.ClassOffsetOutOfRange)
	noError(t, a.DeleteRecords(s.ctx(t), nil))
}

func adminClosed(t *testing.T, s *suite) {
	a := s.admin(t)
	_, err := a.Topics(s.ctx(t), "x")
	noError(t, err)
	noError(t, a.Close(s.ctx(t)))
	_, err = a.Topics(s.ctx(t), "x")
	wantClass(t, err, kafka.ClassClosed)
	noError(t, a.Close(s.ctx(t)))
}

// A coordinator that moves says so in its answer, and the question is asked again.
func adminCommittedElsewhere(t *testing.T, s *suite) {
	a := s.admin(t)
	topic := s.broker.CreateTopic(t, "source", 1, nil)
	tp := kafka.TopicPartition{Topic: topic}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, offset(topic, 3)))
	noError(t, x.Commit(s.ctx(t)))
	refusals := []int16{kerr.NotCoordinator.Code, kerr.CoordinatorNotAvailable.Code, kerr.CoordinatorLoadInProgress.Code, kerr.NotCoordinator.Code}
	var met atomic.Int32 // by the broker's goroutine
	s.broker.Cluster.ControlKey(int16(kmsg.OffsetFetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		n := int(met.Load())
		if n == len(refusals) {
			s.broker.Cluster.DropControl()
			return nil, nil, false
		}
		s.broker.Cluster.KeepControl()
		r := q.ResponseKind().(*kmsg.OffsetFetchResponse)
		r.ErrorCode = refusals[n] // before version 8
		for _, g := range q.(*kmsg.OffsetFetchRequest).Groups {
			if g.Group != member.Group {
				return nil, nil, false
			}
			rg := kmsg.NewOffsetFetchResponseGroup()
			rg.Group, rg.ErrorCode = g.Group, refusals[n]
			r.Groups = append(r.Groups, rg)
		}
		met.Add(1)
		return r, nil, true
	})
	got, err := a.CommittedOffsets(s.ctx(t), member.Group, tp)
	noError(t, err)
	if n := int(met.Load()); got[tp].Offset != 3 || n < len(refusals) {
		t.Errorf("offsets %v, %d of %d refusals were met", got, n, len(refusals))
	}
}

// A cluster that has just been made finds no coordinator for a while: that is waited for.
func adminGroupsEarly(t *testing.T, s *suite) {
	a := s.admin(t)
	until := time.Now().Add(3 * time.Second)
	s.broker.Cluster.ControlKey(int16(kmsg.FindCoordinator), func(q kmsg.Request) (kmsg.Response, error, bool) {
		if time.Now().After(until) {
			s.broker.Cluster.DropControl()
			return nil, nil, false
		}
		s.broker.Cluster.KeepControl()
		return noCoordinator(q), nil, true
	})
	g, err := a.DescribeGroup(s.ctx(t), s.broker.Name(t, "group"))
	noError(t, err)
	if g.State != "Dead" || time.Now().Before(until) {
		t.Errorf("group %+v", g)
	}
}

// A coordinator that is found after the question was given up, which ends the process with librdkafka's admin client
// (see confluent's memberReader): nothing is left of such a question.
func adminGroupsLate(t *testing.T, s *suite) {
	own := &suite{client: s.client, broker: Embedded(t)}
	a := own.admin(t)
	m, member := own.member(t)
	describe := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(own.ctx(t), within)
		defer cancel()
		_, err := a.DescribeGroup(ctx, member.Group)
		return err
	}
	var found atomic.Bool
	own.broker.Cluster.ControlKey(int16(kmsg.FindCoordinator), func(q kmsg.Request) (kmsg.Response, error, bool) {
		own.broker.Cluster.KeepControl()
		return noCoordinator(q), nil, !found.Load()
	})
	for range 5 {
		found.Store(false)
		_ = describe(700 * time.Millisecond) // no error where the client has kept the coordinator
		found.Store(true)
		own.broker.Network.Break() // a connection that comes up has lookups go on
		noError(t, describe(patience))
		own.broker.Network.Break()
	}
	noError(t, m.Leave(own.ctx(t)))
}

// noCoordinator answers a question for coordinators: there is none yet.
func noCoordinator(q kmsg.Request) kmsg.Response {
	r := q.ResponseKind().(*kmsg.FindCoordinatorResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code // before version 4
	for _, key := range q.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.ErrorCode = key, -1, kerr.CoordinatorNotAvailable.Code
		r.Coordinators = append(r.Coordinators, c)
	}
	return r
}
