package kafka

import (
	"context"
	"time"
)

// MembershipConfig says how a process joins the application's group.
type MembershipConfig struct {
	// Group is the group id, which is the application id.
	Group string
	// Topic is the placement topic, the only topic the members subscribe to.
	Topic string
	// InstanceID is the static member's name. Empty: a dynamic member.
	InstanceID string
	// SessionTimeout is after how long a silent member is dropped. Default 10 s.
	SessionTimeout time.Duration
	// HeartbeatInterval. Default a third of the session timeout, at most 3 s.
	HeartbeatInterval time.Duration
	// Changed, if not nil, is called from a goroutine of the client after every change of
	// State, and must not block.
	Changed func()
}

// Member is how the group knows this process.
type Member struct {
	Group      string
	InstanceID string // empty: dynamic
	ID         string // empty: not (or no longer) a member
	Generation int32
	// Standalone: no member and none to be, as its partitions were assigned by hand. Nothing fences its
	// offsets but the transactional id, which must be one for the partitions, not for the process.
	Standalone bool
	// Native is the client's own form of the same snapshot, opaque to everyone else. It is
	// what [Transactional.SendOffsets] of the same client sends.
	Native any
}

// Same tells whether two snapshots are of the same membership: a new member id means that
// the process was lost to the group in between, whatever its assignment is now.
func (m Member) Same(o Member) bool { return m.Group == o.Group && m.ID == o.ID }

// MembershipState is a snapshot of a [Membership].
type MembershipState struct {
	Member Member
	// Holds are the partitions of the placement topic that this member was given.
	Holds []int32
	// Err is the reason why the membership has ended (fenced by another process with the
	// same instance id, not authorized). It does not come back by itself.
	Err error
}

// Membership keeps a process in its group: it joins in the background, sends heartbeats
// and follows rebalances, whatever the rest of the process does. It is safe for
// concurrent use.
type Membership interface {
	// State gives the present snapshot at once.
	State() MembershipState
	// Leave gives the place up for good (also a static member's, which Close keeps) and
	// waits until the broker has been told.
	Leave(ctx context.Context) error
	// Close stops. A static member's place is kept until its session times out, a dynamic
	// member leaves.
	Closer
}
