package kafkatest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

var transactionalTests = []test{
	{"commits records", false, commitsRecords},
	{"aborts records", false, abortsRecords},
	{"commits at once what is first of a topic", false, commitsFirst},
	{"empty transactions", false, emptyTransactions},
	{"offsets only", false, offsetsOnly},
	{"records and offsets together", false, recordsAndOffsets},
	{"aborted offsets", false, abortedOffsets},
	{"many in a row", false, manyTransactions},
	{"offsets keep their metadata", false, offsetsMetadata},
	{"a failed delivery forbids the commit", false, failedDelivery},
	{"a failed delivery and offsets", false, failedDeliveryAndOffsets},
	{"close with an open transaction", false, closeOpen},
}

// send sends records and gives the reports.
func send(t *testing.T, s *suite, p kafka.Producer, rs []kafka.Record) *reports {
	t.Helper()
	r := newReports()
	noError(t, p.Send(s.ctx(t), rs, r.one()))
	return r
}

// offset makes an offset of partition 0 of a topic.
func offset(topic string, o int64) []kafka.CommittedOffset {
	return []kafka.CommittedOffset{{TopicPartition: kafka.TopicPartition{Topic: topic}, Offset: o}}
}

func commitsRecords(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "commit", 1, nil)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	r := send(t, s, x, records(topic, numbers("v", 0, 1000)...))
	noError(t, x.Commit(s.ctx(t)))
	if !r.all(t) {
		t.Error("commit returned before every delivery was reported")
	}
	s.wantValues(t, topic, numbers("v", 0, 1000)...)
}

func abortsRecords(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "abort", 1, nil)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	r := send(t, s, x, records(topic, numbers("v", 0, 1000)...))
	noError(t, x.Abort(s.ctx(t)))
	if !r.all(t) {
		t.Error("abort returned before every delivery was reported")
	}
	noError(t, x.Begin())
	r = send(t, s, x, records(topic, "delivered"))
	r.wait(t)
	noError(t, x.Abort(s.ctx(t)))
	noError(t, x.Begin())
	send(t, s, x, records(topic, "committed"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, topic, "committed")
}

// commitsFirst commits as soon as a producer that is new itself has written to a topic that
// is new to it: a library may still be learning about the topic.
func commitsFirst(t *testing.T, s *suite) {
	for range 10 {
		topic := s.broker.CreateTopic(t, "first", 1, nil)
		x := s.transactional(t, s.broker.Name(t, "txn"))
		noError(t, x.Begin())
		send(t, s, x, records(topic, "v"))
		noError(t, x.Commit(s.ctx(t)))
		s.wantValues(t, topic, "v")
	}
}

func emptyTransactions(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "empty", 1, nil)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	for range 3 {
		noError(t, x.Begin())
		noError(t, x.Commit(s.ctx(t)))
		noError(t, x.Begin())
		noError(t, x.Abort(s.ctx(t)))
	}
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, topic, "v")
}

func offsetsOnly(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "source", 1, nil)
	tp := kafka.TopicPartition{Topic: topic}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	for o := range int64(5) {
		noError(t, x.Begin())
		noError(t, x.SendOffsets(s.ctx(t), member, offset(topic, o)))
		noError(t, x.Commit(s.ctx(t)))
		s.wantCommitted(t, member.Group, tp, o)
	}
	// and records again afterwards
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))
	noError(t, x.SendOffsets(s.ctx(t), member, offset(topic, 7)))
	noError(t, x.Commit(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, 7)
	s.wantValues(t, topic, "v")
}

func recordsAndOffsets(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	sink := s.broker.CreateTopic(t, "sink", 1, nil)
	tp := kafka.TopicPartition{Topic: source}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	send(t, s, x, records(sink, "a", "b"))
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 3)))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, sink, "a", "b")
	s.wantCommitted(t, member.Group, tp, 3)
}

func abortedOffsets(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	sink := s.broker.CreateTopic(t, "sink", 1, nil)
	tp := kafka.TopicPartition{Topic: source}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 3)))
	noError(t, x.Abort(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, -1)
	noError(t, x.Begin())
	send(t, s, x, records(sink, "a"))
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 4)))
	noError(t, x.Abort(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, -1)
	// what was aborted is not in the next transaction
	noError(t, x.Begin())
	send(t, s, x, records(sink, "b"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, -1)
	s.wantValues(t, sink, "b")
}

func manyTransactions(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	sink := s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	var want []string
	for i := range 60 {
		noError(t, x.Begin())
		values := numbers("v", i*10, i*10+10)
		if i%3 != 0 {
			send(t, s, x, records(sink, values...))
		}
		noError(t, x.SendOffsets(s.ctx(t), member, offset(source, int64(i+1))))
		if i%5 == 4 {
			noError(t, x.Abort(s.ctx(t)))
			continue
		}
		noError(t, x.Commit(s.ctx(t)))
		if i%3 != 0 {
			want = append(want, values...)
		}
	}
	s.wantValues(t, sink, want...)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, 59)
}

func offsetsMetadata(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "source", 2, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	long := strings.Repeat("m", 4096)
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, []kafka.CommittedOffset{
		{TopicPartition: kafka.TopicPartition{Topic: topic, Partition: 0}, Offset: 1, Metadata: "AbC+/=="},
		{TopicPartition: kafka.TopicPartition{Topic: topic, Partition: 1}, Offset: 2, Metadata: long},
	}))
	noError(t, x.Commit(s.ctx(t)))
	for p, want := range []string{"AbC+/==", long} {
		o, m := s.committed(t, member.Group, kafka.TopicPartition{Topic: topic, Partition: int32(p)})
		if o != int64(p+1) || m != want {
			t.Errorf("partition %d has offset %d and %d bytes of metadata, want %d and %d", p, o, len(m), p+1, len(want))
		}
	}
}

func failedDelivery(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "fails", 1, map[string]string{"max.message.bytes": "10000"})
	good := s.broker.CreateTopic(t, "good", 1, nil)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	for _, alone := range []bool{true, false} { // with no delivery at all, and with some
		noError(t, x.Begin())
		if !alone {
			send(t, s, x, records(good, "never"))
		}
		r := newReports()
		if err := x.Send(s.ctx(t), records(topic, strings.Repeat("x", 20_000)), r.one()); err != nil {
			wantClass(t, err, kafka.ClassTooLarge)
			noError(t, x.Abort(s.ctx(t)))
			continue
		}
		err := x.Commit(s.ctx(t))
		wantClass(t, err, kafka.ClassAbortable)
		wantClass(t, r.err(0), kafka.ClassTooLarge)
		noError(t, x.Abort(s.ctx(t)))
	}
	noError(t, x.Begin())
	send(t, s, x, records(good, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, good, "v")
	s.wantValues(t, topic)
}

func failedDeliveryAndOffsets(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	sink := s.broker.CreateTopic(t, "fails", 1, map[string]string{"max.message.bytes": "10000"})
	tp := kafka.TopicPartition{Topic: source}
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 5)))
	r := newReports()
	if err := x.Send(s.ctx(t), records(sink, strings.Repeat("x", 20_000)), r.one()); err == nil {
		wantClass(t, x.Commit(s.ctx(t)), kafka.ClassAbortable)
	}
	noError(t, x.Abort(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, -1)
	noError(t, x.Begin())
	send(t, s, x, records(sink, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantCommitted(t, member.Group, tp, -1)
	s.wantValues(t, sink, "v")
}

func closeOpen(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "open", 1, nil)
	id := s.broker.Name(t, "txn")
	x := s.transactional(t, id)
	noError(t, x.Begin())
	r := send(t, s, x, records(topic, numbers("v", 0, 100)...))
	noError(t, x.Close(s.ctx(t)))
	r.wait(t)
	wantClass(t, x.Init(s.ctx(t)), kafka.ClassClosed)
	wantClass(t, x.Begin(), kafka.ClassClosed)
	s.transactional(t, id) // ends what was left open, if anything was
	if got := s.values(t, topic); !slices.Equal(got, nil) {
		t.Errorf("read_committed shows %s of a transaction that was never committed", brief(got))
	}
}
