package kafkatest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

var doubtTests = []test{
	{"a commit that was done and not answered", true, commitNotAnswered},
	{"a commit of offsets alone that was not answered", true, offsetsCommitNotAnswered},
	{"a commit that never arrived", true, commitNeverArrived},
	{"a commit whose connection broke", true, commitConnectionBroke},
	{"offsets that were not answered", true, offsetsNotAnswered},
	{"deliveries that were not answered", true, deliveriesNotAnswered},
	{"an abort that was not answered", true, abortNotAnswered},
	{"concurrent transactions are waited for", true, concurrentTransactions},
	{"a moving group coordinator is followed", true, movingCoordinator},
	{"transactions that a broker cannot do", true, transactionsUnavailable},
	{"missing permissions are named", true, missingPermissions},
}

// doubtful is how long a call waits for an answer that never comes.
const doubtful = 600 * time.Millisecond

// openInterval begins a transaction with one record and offset 5 of source.
func (s *suite) openInterval(t *testing.T) (x kafka.Transactional, member kafka.Member, source, sink string) {
	t.Helper()
	source, sink = s.broker.CreateTopic(t, "source", 1, nil), s.broker.CreateTopic(t, "sink", 1, nil)
	_, member = s.member(t)
	x = s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	send(t, s, x, records(sink, "v")).wait(t)
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 5)))
	return x, member, source, sink
}

// outcome is what may be found once a doubt is over.
type outcome int

const (
	committed outcome = iota
	dropped
	either // a client may go on trying until Init stops it
)

// decided ends the doubt about an interval, checks that it ended in the way given, with
// records and offsets in agreement, and that the next transaction works.
func (s *suite) decided(t *testing.T, x kafka.Transactional, member kafka.Member, source, sink string, how outcome) {
	t.Helper()
	noError(t, x.Init(s.ctx(t)))
	if how == either {
		how = dropped
		if len(s.values(t, sink)) > 0 {
			how = committed
		}
	}
	var want []string
	at := int64(-1)
	if how == committed {
		want, at = []string{"v"}, 5
	}
	s.wantValues(t, sink, want...)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, at)
	noError(t, x.Begin())
	send(t, s, x, records(sink, "next"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, sink, append(want, "next")...)
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, at)
}

// loseAnswerOf makes the next request of a kind the first whose answer is lost.
func (s *suite) loseAnswerOf(key kmsg.Key) {
	s.broker.Cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.Cluster.DropControl()
		s.broker.Network.LoseAnswers()
		return nil, nil, false
	})
}

func commitNotAnswered(t *testing.T, s *suite) {
	x, member, source, sink := s.openInterval(t)
	s.loseAnswerOf(kmsg.EndTxn)
	err := bounded(t, doubtful, x.Commit)
	s.broker.Network.Heal()
	wantClass(t, err, kafka.ClassInDoubt)
	s.decided(t, x, member, source, sink, committed)
}

func offsetsCommitNotAnswered(t *testing.T, s *suite) {
	source, sink := s.broker.CreateTopic(t, "source", 1, nil), s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 5)))
	s.loseAnswerOf(kmsg.EndTxn)
	err := bounded(t, doubtful, x.Commit)
	s.broker.Network.Heal()
	wantClass(t, err, kafka.ClassInDoubt)
	wantClass(t, x.Begin(), kafka.ClassInDoubt)
	noError(t, x.Init(s.ctx(t)))
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, 5)
	noError(t, x.Begin())
	send(t, s, x, records(sink, "next"))
	noError(t, x.Commit(s.ctx(t)))
	s.wantValues(t, sink, "next")
}

func commitNeverArrived(t *testing.T, s *suite) {
	x, member, source, sink := s.openInterval(t)
	var over atomic.Bool
	s.broker.Cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		if over.Load() {
			s.broker.Cluster.DropControl()
			return nil, nil, false
		}
		s.broker.Cluster.KeepControl()
		return nil, kerr.BrokerNotAvailable, true // closes the connection
	})
	defer over.Store(true)
	err := bounded(t, doubtful, x.Commit)
	over.Store(true)
	wantClass(t, err, kafka.ClassInDoubt)
	s.decided(t, x, member, source, sink, either)
}

func commitConnectionBroke(t *testing.T, s *suite) {
	x, member, source, sink := s.openInterval(t)
	seen := make(chan struct{})
	s.broker.Cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.Cluster.DropControl()
		s.broker.Network.LoseAnswers()
		close(seen)
		return nil, nil, false
	})
	ended := make(chan error, 1)
	ctx := within(t, 10*time.Second)
	go func() { ended <- x.Commit(ctx) }()
	<-seen
	_ = s.broker.Cluster.CoordinatorFor(member.Group) // answered behind the request, which is done by then
	s.broker.Network.Heal()
	if err := <-ended; err != nil {
		wantClass(t, err, kafka.ClassInDoubt)
	}
	s.decided(t, x, member, source, sink, committed)
}

func offsetsNotAnswered(t *testing.T, s *suite) {
	source, sink := s.broker.CreateTopic(t, "source", 1, nil), s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	noError(t, x.Begin())
	send(t, s, x, records(sink, "v")).wait(t)
	s.loseAnswerOf(kmsg.TxnOffsetCommit)
	err := bounded(t, doubtful, func(ctx context.Context) error {
		return x.SendOffsets(ctx, member, offset(source, 5))
	})
	s.broker.Network.Heal()
	wantClass(t, err, kafka.ClassInDoubt)
	s.decided(t, x, member, source, sink, dropped)
}

func deliveriesNotAnswered(t *testing.T, s *suite) {
	x, member, source, sink := s.openInterval(t)
	s.broker.Network.LoseAnswers()
	r := send(t, s, x, records(sink, "lost"))
	err := bounded(t, doubtful, x.Commit)
	wantClass(t, err, kafka.ClassAbortable, kafka.ClassInDoubt, kafka.ClassTimeout, kafka.ClassUnreachable)
	s.broker.Network.Heal()
	s.decided(t, x, member, source, sink, dropped)
	r.wait(t)
	if r.err(0) == nil {
		t.Error("a record of a transaction that did not commit was reported as delivered after it was given up")
	}
}

func abortNotAnswered(t *testing.T, s *suite) {
	x, member, source, sink := s.openInterval(t)
	s.loseAnswerOf(kmsg.EndTxn)
	err := bounded(t, doubtful, x.Abort)
	s.broker.Network.Heal()
	wantClass(t, err, kafka.ClassInDoubt, kafka.ClassTimeout, kafka.ClassUnreachable)
	s.decided(t, x, member, source, sink, dropped)
}

func concurrentTransactions(t *testing.T, s *suite) {
	source, sink := s.broker.CreateTopic(t, "source", 1, nil), s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	id := s.broker.Name(t, "txn")
	x := s.transactional(t, id)
	for _, key := range []kmsg.Key{kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.InitProducerID} {
		h := s.broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: kerr.ConcurrentTransactions, Count: 2})
		noError(t, x.Begin())
		noError(t, x.SendOffsets(s.ctx(t), member, offset(source, 5)))
		send(t, s, x, records(sink, "v"))
		noError(t, x.Commit(s.ctx(t)))
		noError(t, x.Init(s.ctx(t)))
		h.Remove()
	}
	s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, 5)
	s.wantValues(t, sink, slices.Repeat([]string{"v"}, 4)...)
}

func movingCoordinator(t *testing.T, s *suite) {
	source := s.broker.CreateTopic(t, "source", 1, nil)
	_, member := s.member(t)
	x := s.transactional(t, s.broker.Name(t, "txn"))
	for i, answer := range []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable} {
		h := s.broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Group: member.Group, Err: answer, Count: 2})
		noError(t, x.Begin())
		noError(t, x.SendOffsets(s.ctx(t), member, offset(source, int64(i))))
		noError(t, x.Commit(s.ctx(t)))
		if h.Hits() == 0 {
			t.Errorf("no request was answered with %v", answer)
		}
		h.Remove()
		s.wantCommitted(t, member.Group, kafka.TopicPartition{Topic: source}, int64(i))
	}
}

func transactionsUnavailable(t *testing.T, s *suite) {
	id := s.broker.Name(t, "txn")
	h := s.broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, TxnID: id, Err: kerr.CoordinatorNotAvailable, Count: -1})
	defer h.Remove()
	x := s.uninitialised(t, id)
	err := bounded(t, 1500*time.Millisecond, x.Init)
	wantClass(t, err, kafka.ClassTransactionsUnavailable)
	if !strings.Contains(err.Error(), "transaction.state.log.replication.factor") {
		t.Errorf("the error does not say what to set: %v", err)
	}
	h.Remove()
	noError(t, x.Init(s.ctx(t)))
}

func missingPermissions(t *testing.T, s *suite) {
	source, sink := s.broker.CreateTopic(t, "source", 1, nil), s.broker.CreateTopic(t, "sink", 1, nil)
	_, member := s.member(t)
	id := s.broker.Name(t, "txn")
	denied := func(what, name string, fault kfake.Fault, call func() error) {
		t.Helper()
		fault.Count = -1
		h := s.broker.Cluster.Fault(fault)
		defer h.Remove()
		err := call()
		wantClass(t, err, kafka.ClassUnauthorized)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error does not name %s: %v", what, name, err)
		}
	}
	x := s.uninitialised(t, id)
	denied("init", id, kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.TransactionalIDAuthorizationFailed},
		func() error { return x.Init(s.ctx(t)) })
	noError(t, x.Init(s.ctx(t)))
	noError(t, x.Begin())
	denied("offsets", member.Group, kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit, kmsg.AddOffsetsToTxn}, Err: kerr.GroupAuthorizationFailed},
		func() error { return x.SendOffsets(s.ctx(t), member, offset(source, 1)) })
	noError(t, x.Init(s.ctx(t)))
	noError(t, x.Begin())
	denied("produce", sink, kfake.Fault{Keys: []kmsg.Key{kmsg.Produce, kmsg.AddPartitionsToTxn}, Topic: sink, Err: kerr.TopicAuthorizationFailed},
		func() error {
			r := send(t, s, x, records(sink, "v"))
			r.wait(t)
			return r.err(0)
		})
}
