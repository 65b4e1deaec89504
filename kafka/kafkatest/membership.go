package kafkatest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/kafka"
)

var membershipTests = []test{
	{"joins and holds", false, joinsAndHolds},
	{"one of two holds", false, oneOfTwoHolds},
	{"Changed is called", false, changedIsCalled},
	{"a static member's restart takes its place at once", false, staticRestart},
	{"a second process with the same instance id", false, instanceFenced},
	{"leave gives the place to the other", false, leaveHandsOver},
	{"a dynamic member's close leaves", false, dynamicLeaves},
	{"a silent member is dropped", false, silentMemberDropped},
	{"closed", false, membershipClosed},
}

// placementOf asks the broker which topic a member's group consumes. It does not know in the middle of a rebalance.
func (s *suite) placementOf(t *testing.T, m kafka.Membership) (topic string) {
	t.Helper()
	adm := kadm.NewClient(s.broker.raw(t))
	Eventually(t, patience, "the group consumes a topic", func() bool {
		groups, err := adm.DescribeGroups(s.ctx(t), m.State().Member.Group)
		noError(t, err)
		for _, g := range groups {
			for topic = range g.AssignedPartitions() {
				return true
			}
		}
		return false
	})
	return topic
}

func (s *suite) groupConfig(t *testing.T) kafka.MembershipConfig {
	return kafka.MembershipConfig{Group: s.broker.Name(t, "group"), Topic: s.broker.CreateTopic(t, "placement", 1, nil),
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 100 * time.Millisecond}
}

func static(cfg kafka.MembershipConfig, instance string) kafka.MembershipConfig {
	cfg.InstanceID = instance
	return cfg
}

// holding waits until a membership holds the placement partition.
func holding(t *testing.T, m kafka.Membership) {
	t.Helper()
	Eventually(t, patience, "the member holds the placement partition", func() bool {
		return slices.Equal(m.State().Holds, []int32{0})
	})
}

func joinsAndHolds(t *testing.T, s *suite) {
	cfg := static(s.groupConfig(t), s.broker.Name(t, "instance"))
	m := s.membership(t, cfg)
	holding(t, m)
	st := m.State()
	if st.Err != nil || st.Member.ID == "" || st.Member.Group != cfg.Group || st.Member.InstanceID != cfg.InstanceID || st.Member.Generation < 1 {
		t.Fatalf("state %+v", st)
	}
	groups, err := kadm.NewClient(s.broker.raw(t)).DescribeGroups(s.ctx(t), cfg.Group)
	noError(t, err)
	members := groups[cfg.Group].Members
	if len(members) != 1 || members[0].MemberID != st.Member.ID || members[0].InstanceID == nil || *members[0].InstanceID != cfg.InstanceID {
		t.Fatalf("the broker knows %+v, the client says %+v", members, st.Member)
	}
}

func oneOfTwoHolds(t *testing.T, s *suite) {
	cfg := s.groupConfig(t)
	a := s.membership(t, static(cfg, s.broker.Name(t, "a")))
	holding(t, a)
	b := s.membership(t, static(cfg, s.broker.Name(t, "b")))
	Eventually(t, patience, "both are members of one generation and one holds", func() bool {
		x, y := a.State(), b.State()
		return x.Member.ID != "" && y.Member.ID != "" && x.Member.Generation == y.Member.Generation && len(x.Holds)+len(y.Holds) == 1
	})
	if a.State().Member.Same(b.State().Member) {
		t.Error("two members have the same id")
	}
}

func changedIsCalled(t *testing.T, s *suite) {
	cfg := s.groupConfig(t)
	var calls atomic.Int64
	changed := make(chan struct{}, 1)
	cfg.Changed = func() {
		calls.Add(1)
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	m := s.membership(t, static(cfg, s.broker.Name(t, "a")))
	// nobody looks at State but after a call
	deadline := s.ctx(t)
	for len(m.State().Holds) == 0 {
		select {
		case <-changed:
		case <-deadline.Done():
			t.Fatalf("no call showed that the partition is held; %d calls", calls.Load())
		}
	}
	was := m.State().Member.Generation
	other := cfg
	other.Changed = nil
	s.membership(t, static(other, s.broker.Name(t, "b")))
	for m.State().Member.Generation == was {
		select {
		case <-changed:
		case <-deadline.Done():
			t.Fatalf("no call showed the new generation; %d calls", calls.Load())
		}
	}
}

func staticRestart(t *testing.T, s *suite) {
	cfg := static(s.groupConfig(t), s.broker.Name(t, "instance"))
	cfg.SessionTimeout = 25 * time.Second // a place taken by time-out would be seen
	m := s.membership(t, cfg)
	holding(t, m)
	was := m.State().Member
	noError(t, m.Close(s.ctx(t))) // a static member's place is kept
	start := time.Now()
	again := s.membership(t, cfg)
	holding(t, again)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the restart took %v", took)
	}
	if now := again.State().Member; now.Same(was) {
		t.Errorf("a new process has the old member id %s", now.ID)
	}
}

func instanceFenced(t *testing.T, s *suite) {
	cfg := static(s.groupConfig(t), s.broker.Name(t, "instance"))
	old := s.membership(t, cfg)
	holding(t, old)
	heir := s.membership(t, cfg)
	holding(t, heir)
	Eventually(t, patience, "the old one knows that it was replaced", func() bool { return old.State().Err != nil })
	st := old.State()
	wantClass(t, st.Err, kafka.ClassInstanceFenced)
	if len(st.Holds) != 0 {
		t.Errorf("the fenced one still holds %v", st.Holds)
	}
	// it does not come back: the heir keeps its place
	id := heir.State().Member.ID
	ctx := within(t, 500*time.Millisecond)
	for ctx.Err() == nil {
		if st := heir.State(); st.Err != nil || st.Member.ID != id {
			t.Fatalf("the heir lost its place: %+v", st)
		}
	}
	noError(t, old.Close(s.ctx(t)))
	if st := heir.State(); st.Err != nil || st.Member.ID != id {
		t.Fatalf("the close of the fenced one hurt the heir: %+v", st)
	}
}

func leaveHandsOver(t *testing.T, s *suite) {
	cfg := s.groupConfig(t)
	cfg.SessionTimeout = 25 * time.Second
	a := s.membership(t, static(cfg, s.broker.Name(t, "a")))
	holding(t, a)
	b := s.membership(t, static(cfg, s.broker.Name(t, "b")))
	joined(t, b)
	start := time.Now()
	first, second := a, b
	if len(a.State().Holds) == 0 {
		first, second = b, a
	}
	noError(t, first.Leave(s.ctx(t)))
	if st := first.State(); len(st.Holds) != 0 || st.Member.ID != "" {
		t.Errorf("after leaving the state is %+v", st)
	}
	holding(t, second)
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the hand-over took %v", took)
	}
	noError(t, first.Leave(s.ctx(t))) // again is no error
}

func dynamicLeaves(t *testing.T, s *suite) {
	cfg := s.groupConfig(t)
	cfg.SessionTimeout = 25 * time.Second
	a := s.membership(t, cfg)
	holding(t, a)
	if a.State().Member.InstanceID != "" {
		t.Errorf("a dynamic member has the instance id %q", a.State().Member.InstanceID)
	}
	start := time.Now()
	noError(t, a.Close(s.ctx(t)))
	holding(t, s.membership(t, cfg))
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the next member waited %v: close did not leave", took)
	}
}

func silentMemberDropped(t *testing.T, s *suite) {
	cfg := s.groupConfig(t)
	cfg.SessionTimeout = time.Second
	a := s.membership(t, static(cfg, s.broker.Name(t, "a")))
	holding(t, a)
	noError(t, a.Close(s.ctx(t)))
	holding(t, s.membership(t, static(cfg, s.broker.Name(t, "b"))))
}

func membershipClosed(t *testing.T, s *suite) {
	m, _ := s.member(t)
	noError(t, m.Close(s.ctx(t)))
	st := m.State()
	if st.Member.ID != "" || len(st.Holds) != 0 {
		t.Errorf("after close the state is %+v", st)
	}
	wantClass(t, st.Err, kafka.ClassClosed)
	noError(t, m.Close(s.ctx(t)))
	wantClass(t, m.Leave(s.ctx(t)), kafka.ClassClosed)
}
