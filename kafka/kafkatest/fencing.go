package kafkatest

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

var fencingTests = []test{
	{"init fences and ends the transaction of another", false, initFences},
	{"init ends its own open transaction", false, initEndsOwn},
	{"init at any time", false, initAgain},
	{"a fenced one cannot commit offsets", false, fencedOffsets},
	{"a fenced one cannot commit offsets alone", false, fencedOffsetsOnly},
	{"a transaction that takes too long", false, transactionTimesOut},
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
	// brokers look for such transactions every 10 s by default
	r.untilWithin(t, 3*patience, "the broker has aborted the transaction", func() bool { return r.next[tp] == 2 })
	wantClass(t, x.Commit(s.ctx(t)), kafka.ClassFenced, kafka.ClassAbortable)
	noError(t, x.Init(s.ctx(t)))
	noError(t, x.Begin())
	send(t, s, x, records(topic, "v"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, topic, "v")
}
