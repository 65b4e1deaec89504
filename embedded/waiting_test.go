package embedded

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testlog"
)

// waits runs what tells of the wait beside a test in a bubble, which also sees to it that it ends.
func waits(t *testing.T, test func(t *testing.T, h *Host, subscribed *atomic.Bool, log *testlog.Log, after func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Log
		var subscribed atomic.Bool
		subscribed.Store(true)
		h := &Host{log: log.Logger(), consumer: Consumer{Group: "g", Subscribed: subscribed.Load}}
		var end context.CancelFunc
		h.life, end = context.WithCancel(t.Context())
		h.open, h.ending = context.WithCancel(h.life)
		h.well, h.unwell = context.WithCancel(h.life)
		defer end()
		h.work.Go(h.tellWaiting)
		test(t, h, &subscribed, &log, func(d time.Duration) {
			<-time.After(d) // the bubble's time
			synctest.Wait()
		})
	})
}

// A host that is given no partition says once, after a moment, in which group it waits and for what.
func TestWaitIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		answered bool
		says     string
	}{
		"no answer yet":    {false, "a member has ended"},
		"nothing for this": {true, "has none left"},
	} {
		t.Run(name, func(t *testing.T) {
			waits(t, func(t *testing.T, h *Host, _ *atomic.Bool, log *testlog.Log, after func(time.Duration)) {
				if c.answered {
					h.place.heard(0)
				}
				after(silence - 1)
				if text := log.String(); text != "" {
					t.Errorf("it says at once: %s", text)
				}
				after(time.Hour)
				if log.Count("") != 1 || log.Count("level=INFO", "waiting for a place in the group", "group=g", c.says) != 1 {
					t.Errorf("it says %q", log.String())
				}
			})
		})
	}
}

// Nothing is told when partitions came in time, or are assigned by hand, or when the host was closed or has failed; nor while the consumer is
// not subscribed, which is its user's business.
func TestWaitThatIsNotTold(t *testing.T) {
	for name, event := range map[string]func(*Host, *atomic.Bool){
		"assigned":       func(h *Host, _ *atomic.Bool) { h.place.heard(1) },
		"by hand":        func(h *Host, _ *atomic.Bool) { h.byHand.Store(true) },
		"closing":        func(h *Host, _ *atomic.Bool) { h.ending() },
		"failed":         func(h *Host, _ *atomic.Bool) { h.unwell() },
		"not subscribed": func(_ *Host, subscribed *atomic.Bool) { subscribed.Store(false) },
	} {
		t.Run(name, func(t *testing.T) {
			waits(t, func(t *testing.T, h *Host, subscribed *atomic.Bool, log *testlog.Log, after func(time.Duration)) {
				after(silence - time.Second)
				event(h, subscribed)
				after(time.Hour)
				if text := log.String(); text != "" {
					t.Errorf("it says %s", text)
				}
				if name != "not subscribed" {
					h.work.Wait() // it has ended by itself
					return
				}
				subscribed.Store(true)
				after(silence + time.Second)
				if log.Count("waiting for a place in the group") != 1 {
					t.Errorf("subscribed at last, it says %q", log.String())
				}
			})
		})
	}
}
