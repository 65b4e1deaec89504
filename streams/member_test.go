package streams

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
)

// group is a client whose membership is what a test says.
type group struct {
	kafka.Client
	kafka.Membership
	mu  sync.Mutex
	s   kafka.MembershipState
	cfg kafka.MembershipConfig
}

func (g *group) NewMembership(_ kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	g.cfg = cfg
	return g, nil
}

func (g *group) State() kafka.MembershipState {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.s
	s.Holds = slices.Clone(s.Holds)
	return s
}

// rebalance ends with a new generation of the same member.
func (g *group) rebalance(generation int32, holds ...int32) {
	g.mu.Lock()
	g.s = kafka.MembershipState{Member: kafka.Member{Group: "app", ID: "member", Generation: generation}, Holds: holds}
	g.mu.Unlock()
	g.cfg.Changed()
}

// A place that was lost and regained while the workers did not look is not the same place:
// another process may have committed in between.
func TestPlaceLostAndRegained(t *testing.T) {
	dir, err := statedir.Open(t.TempDir(), "app")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	g := &group{}
	a := &App{cfg: Config{AppID: "app", Client: g}, changed: make(chan struct{})}
	m, err := a.join(dir)
	if err != nil {
		t.Fatal(err)
	}
	g.rebalance(1, 0)
	place, err := m.awaitPlace(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := place.current(); !got.Same(place.started) || got.Generation != 1 {
		t.Errorf("%+v, started as %+v", got, place.started)
	}
	g.rebalance(2, 0)
	if got := place.current(); !got.Same(place.started) || got.Generation != 2 {
		t.Errorf("a rebalance that took nothing away: %+v", got)
	}
	g.rebalance(3)
	g.rebalance(4, 0)
	if got := place.current(); got.Same(place.started) {
		t.Errorf("a place that was lost and regained still commits, as %+v", got)
	}
	next, err := m.awaitPlace(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := next.current(); !got.Same(next.started) || got.Generation != 4 {
		t.Errorf("the next place: %+v", got)
	}
	if got := place.current(); got.Same(place.started) {
		t.Error("the old place came back")
	}
}
