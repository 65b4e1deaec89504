//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	defaultSessionTimeout = 10 * time.Second
	maxHeartbeatInterval  = 3 * time.Second
	// memberSlice is how long the membership stays inside Poll, and so how late it notices
	// a new generation at the worst ([membership.State] asks librdkafka itself).
	memberSlice = 50 * time.Millisecond
)

// membership keeps the process in its group. Its goroutine owns Poll, the rebalance
// callback (which runs inside Poll) and Close of the librdkafka consumer.
type membership struct {
	c       *ck.Consumer
	wire    *wire
	cfg     kafka.MembershipConfig
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when the goroutine has ended
	stopped sync.Once
	counted sync.Once    // left behind, counted once
	inside  sync.RWMutex // held (shared) by questions to c, and by the goroutine to close it
	closing bool         // of c; the goroutine's own

	mu     sync.Mutex // guards what follows; held while metadata is read
	state  kafka.MembershipState
	untold bool  // a change that Changed was not called for
	left   bool  // Leave has begun
	gone   bool  // Leave is done
	usable bool  // c is not closed yet
	fatal  bool  // c cannot be closed
	closed error // of the library's Close
}

// NewMembership joins the group in the background.
func (c Client) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	const op = "make the membership"
	s = withDefaults(s)
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = defaultSessionTimeout
	}
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = min(cfg.SessionTimeout/3, maxHeartbeatInterval)
	}
	conf, err := c.membershipConf(s, cfg)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	w := newWire(s, "member", conf)
	k, err := ck.NewConsumer(&conf)
	if err != nil {
		w.close()
		return nil, invalid(op, "%w", err)
	}
	m := &membership{c: k, wire: w, cfg: cfg, stop: make(chan struct{}), done: make(chan struct{}), usable: true}
	m.state.Member = m.nobody()
	go m.run()
	return m, nil
}

func (m *membership) nobody() kafka.Member {
	return kafka.Member{Group: m.cfg.Group, InstanceID: m.cfg.InstanceID}
}

// State gives the snapshot, with the generation that librdkafka knows at this moment.
// Changed is not called from here, but by the goroutine a moment later: the caller may
// hold what Changed takes.
func (m *membership) State() kafka.MembershipState {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.untold = m.refresh() || m.untold
	s := m.state
	s.Holds = slices.Clone(s.Holds)
	return s
}

func (m *membership) tell(changed bool) {
	if changed && m.cfg.Changed != nil {
		m.cfg.Changed()
	}
}

// refresh reads the group metadata and tells whether the member changed. mu is held.
func (m *membership) refresh() bool {
	if !m.usable || m.fatal || m.left || m.state.Err != nil {
		return false
	}
	md, err := m.c.GetConsumerGroupMetadata()
	if err != nil {
		return false
	}
	is, err := identify(md)
	if err != nil {
		return m.end(&kafka.Error{Class: kafka.ClassFatal, Op: "read the group metadata", On: m.cfg.Group, Err: err})
	}
	now := &m.state.Member
	switch {
	case is.member == "":
		// Not joined yet, or the group has dropped the member.
		if now.ID == "" {
			return false
		}
		*now, m.state.Holds = m.nobody(), nil
		return true
	case is.generation < 0:
		// Joining again under the same id: the last known generation stands until there is a
		// new one. Under another id there is none to show.
		if now.ID == is.member || now.ID == "" {
			return false
		}
		*now, m.state.Holds = m.nobody(), nil
		return true
	case now.ID == is.member && now.Generation == is.generation:
		return false
	}
	*now = kafka.Member{Group: m.cfg.Group, InstanceID: m.cfg.InstanceID, ID: is.member, Generation: is.generation,
		Native: &snapshot{md: md, of: m}}
	return true
}

// end records why the membership is over. mu is held.
func (m *membership) end(err error) bool {
	if m.state.Err != nil {
		return false
	}
	m.state = kafka.MembershipState{Member: m.nobody(), Err: err}
	return true
}

func (m *membership) run() {
	defer close(m.done)
	if err := m.c.SubscribeTopics([]string{m.cfg.Topic}, m.rebalance); err != nil {
		m.update(func() bool { return m.end(m.wire.fail("subscribe to", m.cfg.Topic, err)) })
	}
	for !m.over() {
		ev := m.c.Poll(milliseconds(memberSlice))
		if e, ok := ev.(ck.Error); ok {
			m.trouble(e)
		}
		// Records of the placement topic are read by others, under read_committed.
		m.update(m.refresh)
	}
	m.mu.Lock()
	fatal := m.fatal
	m.usable = false
	m.end(&kafka.Error{Class: kafka.ClassClosed, Op: "be a member of", On: "group " + m.cfg.Group, Err: errors.New("the membership was closed")})
	m.mu.Unlock()
	if fatal {
		// Its Close would never return.
		m.wire.leave(m.c.String())
		return
	}
	m.inside.Lock()
	defer m.inside.Unlock()
	m.closing = true
	m.closed = m.c.Close()
	m.wire.close()
}

func (m *membership) update(change func() bool) {
	m.mu.Lock()
	changed := change() || m.untold
	m.untold = false
	m.mu.Unlock()
	m.tell(changed)
}

// over tells whether polling is to end: the membership was closed, or cannot go on.
func (m *membership) over() bool {
	select {
	case <-m.stop:
		return true
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Err != nil
}

// rebalance is called by librdkafka inside Poll and Close. It must assign and unassign
// itself, with the incremental kind: otherwise the binding would, and block for ever if
// that failed. The placement topic is not fetched here, so the partitions are paused.
func (m *membership) rebalance(c *ck.Consumer, ev ck.Event) error {
	if m.closing { // this goroutine has set it
		Dismiss(c)
		return nil
	}
	switch e := ev.(type) {
	case ck.AssignedPartitions:
		if err := c.IncrementalAssign(e.Partitions); err != nil {
			m.update(func() bool { return m.end(m.wire.fail("take over partitions of", m.cfg.Topic, err)) })
			return err
		}
		_ = c.Pause(e.Partitions)
		m.update(func() bool {
			m.refresh()
			for _, p := range e.Partitions {
				if !slices.Contains(m.state.Holds, p.Partition) {
					m.state.Holds = append(m.state.Holds, p.Partition)
				}
			}
			slices.Sort(m.state.Holds)
			return true
		})
	case ck.RevokedPartitions:
		m.update(func() bool {
			m.state.Holds = slices.DeleteFunc(slices.Clone(m.state.Holds), func(held int32) bool {
				return slices.ContainsFunc(e.Partitions, func(p ck.TopicPartition) bool { return p.Partition == held })
			})
			return true
		})
		return c.IncrementalUnassign(e.Partitions)
	}
	return nil
}

// trouble handles an error event.
func (m *membership) trouble(e ck.Error) {
	class := classOf(e)
	switch {
	case e.IsFatal():
		m.update(func() bool { m.fatal = true; return m.end(m.ended(class, e)) })
	case class == kafka.ClassUnauthorized:
		m.update(func() bool { return m.end(m.ended(class, e)) })
	default:
		m.wire.event(e)
	}
}

func (m *membership) ended(class kafka.ErrorClass, err error) error {
	on := "group " + m.cfg.Group
	if m.cfg.InstanceID != "" {
		on += " as " + m.cfg.InstanceID
	}
	return &kafka.Error{Class: class, Op: "be a member of", On: on, Err: err}
}

// Leave gives the place up. The binding has no request that removes a static member, but
// an unsubscribe sends LeaveGroup for one too; only Close does not. The library does not
// say when the broker has it, so the group is asked until the member is gone.
func (m *membership) Leave(ctx context.Context) error {
	const op = "leave group"
	m.mu.Lock()
	m.refresh()
	id := m.state.Member.ID
	if m.state.Err != nil || m.gone {
		err := m.state.Err
		m.mu.Unlock()
		if err == nil {
			return nil
		}
		return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: m.cfg.Group, Err: err}
	}
	m.left = true
	err := m.c.Unsubscribe()
	m.mu.Unlock()
	if err != nil {
		return m.wire.fail(op, m.cfg.Group, err)
	}
	if err := m.waitGone(ctx, id); err != nil {
		return m.wire.fail(op, m.cfg.Group, err)
	}
	m.update(func() bool { m.gone, m.state.Member, m.state.Holds = true, m.nobody(), nil; return true })
	return nil
}

// waitGone asks for the group's members until id is not one of them.
func (m *membership) waitGone(ctx context.Context, id string) error {
	tick := time.NewTicker(memberSlice)
	defer tick.Stop()
	for id != "" {
		gone, err := m.absent(ctx, id)
		if gone {
			return nil
		}
		if err != nil && classOf(err) == kafka.ClassUnauthorized {
			return err
		}
		select {
		case <-tick.C:
		case <-m.stop:
			return &kafka.Error{Class: kafka.ClassClosed, Op: "leave group", On: m.cfg.Group, Err: errors.New("closed meanwhile")}
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("%w: whether the member %s is gone could not be found out: %w", ctx.Err(), id, err)
			}
			return fmt.Errorf("%w: the group still has the member %s", ctx.Err(), id)
		}
	}
	return nil
}

// absent asks once. Not under mu: the answer needs the revoke callback, which takes it.
func (m *membership) absent(ctx context.Context, id string) (bool, error) {
	m.inside.RLock()
	defer m.inside.RUnlock()
	m.mu.Lock()
	usable := m.usable
	m.mu.Unlock()
	if !usable {
		return false, errors.New("closed meanwhile")
	}
	a, err := ck.NewAdminClientFromConsumer(m.c)
	if err != nil {
		return false, err
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	g, err := a.DescribeConsumerGroups(ctx, []string{m.cfg.Group})
	if err != nil {
		return false, err
	}
	for _, d := range g.ConsumerGroupDescriptions {
		if d.Error.Code() != ck.ErrNoError {
			return false, d.Error
		}
		for _, member := range d.Members {
			if member.ConsumerID == id {
				return false, nil
			}
		}
	}
	return true, nil
}

// Close ends the goroutine and with it the librdkafka consumer. One with a fatal error was
// left behind and counted when the error came.
func (m *membership) Close(ctx context.Context) error {
	const op = "close the membership"
	m.stopped.Do(func() { close(m.stop) })
	if !inTime(ctx, m.done) {
		m.counted.Do(kafka.CountAbandoned)
		return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: m.cfg.Group,
			Err: fmt.Errorf("the librdkafka consumer %s did not end in time and was left behind: %w", m.c, ctx.Err())}
	}
	if m.closed != nil {
		return m.wire.fail(op, m.cfg.Group, m.closed)
	}
	return nil
}
