package streams

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
)

// member is this process in the application's group.
type member struct {
	app        *App
	membership kafka.Membership
	changed    chan struct{} // has room for one: something changed since it was read
	place      atomic.Pointer[place]
}

// place is a time without a gap in which this process holds the placement partition. A round
// of workers belongs to one: between two, another process may have run the tasks, and the
// broker would take our commit all the same, in the name of the same member.
type place struct {
	m       *member
	started kafka.Member
	lost    atomic.Bool
}

func (a *App) join(dir *statedir.Dir) (*member, error) {
	m := &member{app: a, changed: make(chan struct{}, 1)}
	instance := a.cfg.InstanceID
	if instance == "" {
		instance = dir.ProcessID()
	}
	var err error
	m.membership, err = a.cfg.Client.NewMembership(a.cfg.Settings, kafka.MembershipConfig{Group: a.cfg.AppID, Topic: placementTopic(a.cfg.AppID),
		InstanceID: instance, SessionTimeout: a.cfg.SessionTimeout, Changed: func() {
			select {
			case m.changed <- struct{}{}:
			default:
			}
			if p := m.place.Load(); p != nil {
				p.current() // notices the loss, also when nobody else looks
			}
			a.notify()
		}})
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", a.cfg.AppID, err)
	}
	return m, nil
}

// current gives the member as the group knows it now, and one without id when the place is
// lost: generation and holdings are of one snapshot, so a commit under this generation cannot
// meet one of the partition's next holder.
func (p *place) current() kafka.Member {
	s := p.m.membership.State()
	if !slices.Contains(s.Holds, 0) {
		p.lost.Store(true)
	}
	if p.lost.Load() {
		return kafka.Member{Group: s.Member.Group}
	}
	return s.Member
}

// stands tells whether this process is a member that another one runs the tasks beside.
func (m *member) stands() bool {
	s := m.membership.State()
	return s.Member.ID != "" && !slices.Contains(s.Holds, 0)
}

// silence is how long a start waits for its place without a word.
const silence = 2 * time.Second

// awaitPlace waits until this process is a member that holds the placement partition.
func (m *member) awaitPlace(ctx context.Context, stop <-chan struct{}) (*place, error) {
	first := time.NewTimer(silence)
	defer first.Stop()
	told := time.NewTicker(10 * time.Second)
	defer told.Stop()
	for {
		p := &place{m: m}
		m.place.Store(p) // before the look: a loss behind it is noticed
		s := m.membership.State()
		if s.Err != nil {
			return nil, m.ended(s)
		}
		if s.Member.ID != "" && slices.Contains(s.Holds, 0) {
			p.started = s.Member
			return p, nil
		}
		select {
		case <-m.changed:
		case <-first.C:
			m.tellFirst(s)
		case <-told.C:
			m.tellWaiting(ctx, s)
		case <-stop:
			return nil, errStopped
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ended gives the reason of a membership's end its full text.
func (m *member) ended(s kafka.MembershipState) error {
	err := fmt.Errorf("membership of group %s ended (instance id %s, state directory %s): %w", m.app.cfg.AppID, s.Member.InstanceID, m.app.cfg.StateDir, s.Err)
	if kafka.IsClass(s.Err, kafka.ClassInvalid) {
		// That a group has members of another protocol is one of the reasons.
		return fmt.Errorf("%w; if another program uses this group (the same application on Kafka Streams?), stop it and wait until the group is empty", err)
	}
	return err
}

// tellFirst logs that there is no place yet: most often because of a process that has ended, of which the group does not know.
func (m *member) tellFirst(s kafka.MembershipState) {
	what := "the group's answer: it waits for members that have ended, until their sessions are over"
	if s.Member.ID != "" {
		what = "the member that has the tasks: if it has ended, until its session is over; if it runs, this process stands by"
	}
	m.app.log.Info("waiting for a place in the group", "group", m.app.cfg.AppID, "for", what, "session_at_most", m.app.cfg.SessionTimeout)
}

// tellWaiting logs why there is no place yet. A client may try for ever, and say nothing, to
// join a group whose members are of another kind.
func (m *member) tellWaiting(ctx context.Context, s kafka.MembershipState) {
	if s.Member.ID != "" {
		m.app.log.Info("another process runs the tasks; this one waits to take over when that is gone", "member", s.Member.ID, "generation", s.Member.Generation)
		return
	}
	m.app.mu.Lock()
	admin := m.app.admin
	m.app.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	g, err := admin.DescribeGroup(ctx, m.app.cfg.AppID)
	if err != nil {
		m.app.log.Warn("waiting for a place in the group", "group", m.app.cfg.AppID, "error", err)
		return
	}
	var members []string
	for _, x := range g.Members {
		members = append(members, x.ClientID+" on "+x.Host)
	}
	m.app.log.Warn("waiting for a place in the group; if its members are another program (the same application on Kafka Streams?), stop it",
		"group", m.app.cfg.AppID, "state", g.State, "members", members)
}
