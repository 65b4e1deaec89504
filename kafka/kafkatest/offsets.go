package kafkatest

import (
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

var offsetsTests = []test{
	{"of a stranger", false, offsetsOfStranger},
	{"with an old generation, then with the new one", false, offsetsOldGeneration},
	{"of a member that left", false, offsetsOfLeftMember},
	{"of a replaced instance", false, offsetsOfReplacedInstance},
	{"of an unknown topic", false, offsetsOfUnknownTopic},
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
