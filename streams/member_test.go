package streams

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/internal/testlog"
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

// A start that gets no place says once, after a moment, what it waits for and for how long at most.
func TestWaitForAPlaceIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		member kafka.Member
		says   string
	}{
		"no member yet":         {kafka.Member{Group: "app"}, "members that have ended"},
		"another has the tasks": {kafka.Member{Group: "app", ID: "member", Generation: 1}, "the member that has the tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := statedir.Open(t.TempDir(), "app")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = dir.Close() }()
			synctest.Test(t, func(t *testing.T) {
				log := &testlog.Log{}
				g := &group{s: kafka.MembershipState{Member: c.member}}
				a := &App{cfg: Config{AppID: "app", Client: g, SessionTimeout: 9 * time.Second}, log: log.Logger(), changed: make(chan struct{})}
				m, err := a.join(dir)
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan error, 1)
				go func() {
					_, err := m.awaitPlace(t.Context(), nil)
					got <- err
				}()
				<-time.After(silence - 1)
				synctest.Wait()
				if text := log.String(); text != "" {
					t.Errorf("it says at once: %s", text)
				}
				<-time.After(4 * time.Second)
				synctest.Wait()
				if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=INFO") || !strings.Contains(text, c.says) || !strings.Contains(text, "session_at_most=9s") {
					t.Errorf("it says %q", text)
				}
				g.rebalance(2, 0)
				if err := <-got; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
