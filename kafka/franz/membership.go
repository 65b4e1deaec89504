package franz

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// membership is a group consumer that subscribes to the placement topic and reads nothing
// of it: it is there for its place in the group.
type membership struct {
	cl   *kgo.Client
	link *link
	cfg  kafka.MembershipConfig

	mu      sync.Mutex
	state   kafka.MembershipState
	leaving bool // Leave or Close was called
	left    bool // the group was told
	closed  bool

	polling sync.WaitGroup
}

// NewMembership makes a member, which joins in the background.
func (c Client) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	const op = "open membership"
	if cfg.Group == "" || cfg.Topic == "" {
		return nil, invalid(op, cfg.Group, "MembershipConfig needs Group and Topic")
	}
	session, heartbeat := cfg.SessionTimeout, cfg.HeartbeatInterval
	if session <= 0 {
		session = 10 * time.Second
	}
	if heartbeat <= 0 {
		heartbeat = min(session/3, 3*time.Second)
	}
	m := &membership{cfg: cfg}
	m.state.Member = kafka.Member{Group: cfg.Group, InstanceID: cfg.InstanceID}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.RebalanceTimeout(max(session, 10*time.Second)),
		// A rebalance takes the partition from nobody who keeps it.
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.lost),
		kgo.WithHooks((*groupErrors)(m)),
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	m.mu.Lock() // callbacks wait until the client is known
	defer m.mu.Unlock()
	var err error
	if m.cl, m.link, err = c.dial(s, "membership", opts...); err != nil {
		return nil, err
	}
	m.cl.PauseFetchTopics(cfg.Topic)
	m.polling.Go(m.poll)
	return m, nil
}

// State gives the snapshot that the last complete rebalance left. While the next one is
// under way it stays as it is: a generation belongs to the partitions that came with it.
func (m *membership) State() kafka.MembershipState {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.state
	st.Holds = slices.Clone(st.Holds)
	return st
}

// change applies f to the state and tells about it.
func (m *membership) change(f func(*kafka.MembershipState)) {
	m.mu.Lock()
	f(&m.state)
	m.mu.Unlock()
	if m.cfg.Changed != nil {
		m.cfg.Changed()
	}
}

// assigned is called at the end of every rebalance, also of one that brought nothing.
func (m *membership) assigned(_ context.Context, cl *kgo.Client, added map[string][]int32) {
	id, generation := cl.GroupMetadata()
	m.change(func(st *kafka.MembershipState) {
		if m.leaving {
			return
		}
		st.Member.ID, st.Member.Generation = id, generation
		st.Holds = append(st.Holds, added[m.cfg.Topic]...)
		slices.Sort(st.Holds)
		st.Holds = slices.Compact(st.Holds)
	})
}

// revoked is called before the rebalance that hands the partitions on, or when the client
// ends.
func (m *membership) revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	m.change(func(st *kafka.MembershipState) {
		st.Holds = slices.DeleteFunc(st.Holds, func(p int32) bool { return slices.Contains(lost[m.cfg.Topic], p) })
	})
}

// lost is called when the session is over. Whether the member id is, the group's error
// tells (see groupErrors).
func (m *membership) lost(context.Context, *kgo.Client, map[string][]int32) {
	m.change(func(st *kafka.MembershipState) { st.Holds = nil })
}

// groupErrors hears of errors that end a session of the group.
type groupErrors membership

func (g *groupErrors) OnGroupManageError(err error) {
	m := (*membership)(g)
	switch classOf(err) {
	case kafka.ClassInstanceFenced, kafka.ClassUnauthorized, kafka.ClassInvalid:
		m.end(err)
	case kafka.ClassUnknownMember:
		m.change(func(st *kafka.MembershipState) { st.Member.ID, st.Member.Generation = "", 0 })
	}
}

// end gives up: franz-go would try again for ever. It is called on franz-go's goroutines,
// which the client waits for when it is closed, so it only cancels.
func (m *membership) end(err error) {
	m.change(func(st *kafka.MembershipState) {
		if st.Err == nil {
			st.Err = m.failure("stay in group", err)
		}
		st.Member.ID, st.Member.Generation, st.Holds = "", 0, nil
	})
	m.link.cancel()
}

func (m *membership) failure(op string, err error) error {
	on := m.cfg.Group
	if m.cfg.InstanceID != "" {
		on += " as instance " + m.cfg.InstanceID
	}
	return m.link.call(op).fail(on, err)
}

// poll hears of errors that come with fetches. The topic is paused: no record arrives.
func (m *membership) poll() {
	for {
		fetches := m.cl.PollFetches(m.link.ctx)
		if m.link.ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(_ string, _ int32, err error) {
			if classOf(err) == kafka.ClassUnauthorized {
				m.end(err)
			}
		})
	}
}

// Leave ends the membership and tells the group so, in the name of the instance too: a
// static member's place would otherwise be kept. After an error it may be called again.
func (m *membership) Leave(ctx context.Context) error {
	m.mu.Lock()
	closed, left := m.closed, m.left
	m.mu.Unlock()
	switch {
	case left:
		return nil
	case closed:
		return m.failure("leave group", kgo.ErrClientClosed)
	}
	m.depart()
	err := m.cl.LeaveGroupContext(ctx) // a dynamic member leaves with it
	id, _ := m.cl.GroupMetadata()
	if err == nil && id != "" && m.cfg.InstanceID != "" {
		err = m.leaveStatic(ctx, id)
	}
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) {
		return m.failure("leave group", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
	return nil
}

// depart marks the membership as over.
func (m *membership) depart() {
	m.change(func(st *kafka.MembershipState) {
		m.leaving = true
		st.Member.ID, st.Member.Generation, st.Holds = "", 0, nil
		if st.Err == nil {
			st.Err = m.failure("stay in group", kgo.ErrClientClosed)
		}
	})
}

func (m *membership) leaveStatic(ctx context.Context, id string) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.cfg.Group, id
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.InstanceID = id, &m.cfg.InstanceID
	req.Members = append(req.Members, member)
	resp, err := req.RequestWith(ctx, m.cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for _, r := range resp.Members {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the client. A dynamic member leaves with it; a static one's place is kept.
func (m *membership) Close(ctx context.Context) error {
	m.mu.Lock()
	already := m.closed
	m.closed = true
	m.mu.Unlock()
	if already {
		return nil
	}
	m.depart()
	err := closeClient(ctx, m.cl, m.link, "close membership")
	m.polling.Wait()
	return err
}
