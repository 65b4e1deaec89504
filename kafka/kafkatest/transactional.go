package kafkatest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

var transactionalTests = []test{
	{"commits records", false, commitsRecords},
	{"aborts records", false, abortsRecords},
	{"empty transactions", false, emptyTransactions},
	{"offsets only", false, offsetsOnly},
	{"records and offsets together", false, recordsAndOffsets},
	{"aborted offsets", false, abortedOffsets},
	{"many in a row", false, manyTransactions},
	{"offsets keep their metadata", false, offsetsMetadata},
	{"a failed delivery forbids the commit", false, failedDelivery},
	{"a failed delivery and offsets", false, failedDeliveryAndOffsets},
	{"init fences and ends the transaction of another", false, initFences},
	{"init ends its own open transaction", false, initEndsOwn},
	{"init at any time", false, initAgain},
	{"a fenced one cannot commit offsets", false, fencedOffsets},
	{"a fenced one cannot commit an empty interval's offsets", false, fencedOffsetsOnly},
	{"a transaction that takes too long", false, transactionTimesOut},
	{"offsets of a stranger", false, offsetsOfStranger},
	{"offsets with an old generation, then with the new one", false, offsetsOldGeneration},
	{"offsets of a member that left", false, offsetsOfLeftMember},
	{"offsets of a replaced instance", false, offsetsOfReplacedInstance},
	{"offsets of an unknown topic", false, offsetsOfUnknownTopic},
	{"close with an open transaction", false, closeOpen},
}

// member joins a group of its own through the client under test.
func (s *suite) member(t *testing.T) (kafka.Membership, kafka.Member) {
	t.Helper()
	m := s.membership(t, kafka.MembershipConfig{
		Group: s.broker.Name(t, "group"), Topic: s.broker.CreateTopic(t, "placement", 1, nil), InstanceID: s.broker.Name(t, "instance")})
	return m, joined(t, m).Member
}

// joined waits until a membership has joined.
func joined(t *testing.T, m kafka.Membership) kafka.MembershipState {
	t.Helper()
	Eventually(t, patience, "the member has joined", func() bool {
		if err := m.State().Err; err != nil {
			t.Fatalf("the membership ended: %v", err)
		}
		return m.State().Member.ID != ""
	})
	return m.State()
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

func initFences(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "fence", 1, nil)
	id := s.broker.Name(t, "txn")
	zombie := s.transactional(t, id)
	noError(t, zombie.Begin())
	send(t, s, zombie, records(topic, "zombie")).wait(t)

	heir := s.transactional(t, id)
	noError(t, heir.Begin())
	send(t, s, heir, records(topic, "heir"))
	noError(t, heir.Commit(s.ctx(t)))
	s.wantValues(t, topic, "heir") // the zombie's transaction was ended by Init

	wantClass(t, zombie.Commit(s.ctx(t)), kafka.ClassFenced)
	s.wantValues(t, topic, "heir")

	// the fenced one may come back, and fences in its turn
	noError(t, zombie.Init(s.ctx(t)))
	noError(t, zombie.Begin())
	send(t, s, zombie, records(topic, "back"))
	noError(t, zombie.Commit(s.ctx(t)))
	noError(t, heir.Begin())
	r := send(t, s, heir, records(topic, "late"))
	wantClass(t, heir.Commit(s.ctx(t)), kafka.ClassFenced)
	if r.all(t); r.err(0) == nil {
		t.Error("a fenced producer's record was reported as delivered")
	}
	s.wantValues(t, topic, "heir", "back")
}

func initEndsOwn(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	topic := s.broker.CreateTopic(t, "own", 1, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	r := send(t, s, x, records(topic, "dropped"))
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 9)))
	noError(t, x.Init(s.ctx(t)))
	if !r.all(t) {
		t.Error("init returned before every delivery was reported")
	}
	s.wantValues(t, topic)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, -1)
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, topic, "v")
}

func initAgain(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "again", 1, nil)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	var want []string
	for i := range 5 {
		noError(t, x.Begin())
		v := numbers("v", i, i+1)
		send(t, s, x, records(topic, v...))
		noError(t, x.Commit(s.ctx(t)))
		want = append(want, v...)
		noError(t, x.Init(s.ctx(t)))
	}
	s.wantValues(t, topic, want...)
}

func fencedOffsets(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	topic := s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	id := s.broker.Name(t, "txn")
	zombie := s.transactional(t, id)
	noError(t, zombie.Begin())
	send(t, s, zombie, records(topic, "zombie")).wait(t)
	s.transactional(t, id)
	err := zombie.SendOffsets(s.ctx(t), member, offset(source, 5))
	wantClass(t, err, kafka.ClassFenced)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, -1)
	s.wantValues(t, topic)
}

func fencedOffsetsOnly(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	_, member := s.member(t)
	id := s.broker.Name(t, "txn")
	zombie := s.transactional(t, id)
	noError(t, zombie.Begin())
	noError(t, zombie.SendOffsets(s.ctx(t), member, offset(source, 5)))
	s.transactional(t, id)
	wantClass(t, zombie.Commit(s.ctx(t)), kafka.ClassFenced)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, -1)
}

func transactionTimesOut(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "slow", 1, nil)
	x, err := s.client.NewTransactional(s.broker.Settings(), kafka.TransactionalConfig{ID: s.broker.Name(t, "txn"), Timeout: time.Second})
	noError(t, err)
	closing(t, x)
	noError(t, x.Init(s.ctx(t)))
	noError(t, x.Begin())
	send(t, s, x, records(topic, "late")).wait(t)
	// the broker's own abort shows as the end of the transaction for read_committed
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.until(t, "the broker has aborted the transaction", func() bool { return r.next[tp] == 2 })
	wantClass(t, x.Commit(s.ctx(t)), kafka.ClassFenced, kafka.ClassAbortable)
	noError(t, x.Init(s.ctx(t)))
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, topic, "v")
}

// Without a member id a broker would accept the offsets unfenced, so the client must not
// send them.
func offsetsOfStranger(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	m, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, m.Leave(s.ctx(t)))
	noError(t, x.Begin())
	err := x.SendOffsets(s.ctx(t), kafka.Member{Group: member.Group}, offset(source, 1))
	wantClass(t, err, kafka.ClassUnknownMember, kafka.ClassInvalid) // an empty member would not be fenced at all
	noError(t, x.Abort(s.ctx(t)))
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, -1)
}

func offsetsOldGeneration(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	topic := s.broker.CreateTopic(t, "sink", 1, nil)
	m, old := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))

	// a second member makes a new generation
	s.secondMember(t, m, old)
	wantClass(t, x.SendOffsets(s.ctx(t), old, offset(source, 5)), kafka.ClassIllegalGeneration)
	for {
		now := m.State().Member
		if !now.Same(old) {
			t.Fatalf("the member id changed from %s to %s", old.ID, now.ID)
		}
		err := x.SendOffsets(s.ctx(t), now, offset(source, 5))
		if err == nil {
			break
		}
		wantClass(t, err, kafka.ClassIllegalGeneration) // the group may still be moving
	}
	noError(t, x.Commit(s.ctx(t)))
	s.wantCommitted(t, old.Group, kafka.TopicPartition{Topic: source}, 5)
	s.wantValues(t, topic, "v")
}

// secondMember joins a group that has one member, and waits until that one has seen the
// new generation.
func (s *suite) secondMember(t *testing.T, first kafka.Membership, was kafka.Member) kafka.Membership {
	t.Helper()
	second := s.membership(t, kafka.MembershipConfig{Group: was.Group, Topic: s.placementOf(t, first), InstanceID: s.broker.Name(t, "instance")})
	joined(t, second)
	Eventually(t, patience, "the first member has a new generation", func() bool {
		return first.State().Member.Generation > was.Generation
	})
	return second
}

func offsetsOfLeftMember(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	m, member := s.member(t)
	s.secondMember(t, m, member) // keeps the group alive: an empty group is another case
	member = m.State().Member
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, m.Leave(s.ctx(t)))
	noError(t, x.Begin())
	err := x.SendOffsets(s.ctx(t), member, offset(source, 1))
	wantClass(t, err, kafka.ClassUnknownMember)
	noError(t, x.Abort(s.ctx(t)))
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, -1)
}

func offsetsOfReplacedInstance(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	topic := s.broker.CreateTopic(t, "placement", 1, nil)
	cfg := kafka.MembershipConfig{Group: s.broker.Name(t, "group"), Topic: topic, InstanceID: s.broker.Name(t, "instance")}
	old := joined(t, s.membership(t, cfg)).Member
	heir := joined(t, s.membership(t, cfg)).Member
	if heir.Same(old) {
		t.Fatalf("two processes have the member id %s", old.ID)
	}
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	wantClass(t, x.SendOffsets(s.ctx(t), old, offset(source, 1)), kafka.ClassInstanceFenced, kafka.ClassUnknownMember)
	noError(t, x.Abort(s.ctx(t)))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), heir, offset(source, 2)))
	noError(t, x.Commit(s.ctx(t)))
	s.wantCommitted(t, cfg.Group, kafka.TopicPartition{Topic: source}, 2)
}

func offsetsOfUnknownTopic(t *testing.T, s *suite) {
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	wantClass(t, x.SendOffsets(s.ctx(t), member, offset(s.broker.Name(t, "unknown"), 1)), kafka.ClassUnknownTopic, kafka.ClassAbortable)
	noError(t, x.Abort(s.ctx(t)))
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
