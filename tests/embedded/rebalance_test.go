package embedded

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
)

// member is a loop on a goroutine of its own, as a process would have it.
type member struct {
	l    loop
	stop context.CancelFunc
	done chan struct{}
}

func (w *world) member(cfg embedded.Config, f function) *member {
	w.t.Helper()
	return w.run(w.start(cfg), f)
}

func (w *world) run(l loop, f function) *member {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{l: l, stop: cancel, done: make(chan struct{})}
	go func() { // ended by leave
		defer close(m.done)
		for ctx.Err() == nil {
			if err := l.poll(f); err != nil {
				w.t.Error("process:", err)
				return
			}
		}
		cctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := l.Close(cctx); err != nil {
			w.t.Error("close:", err)
		}
	}()
	w.t.Cleanup(m.leave)
	return m
}

func (m *member) leave() {
	m.stop()
	<-m.done
}

// feed produces until stopped, some records at a time, and gives the way to stop it.
func (w *world) feed() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.produce(20)
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// Members come and go while records arrive: each is counted once, in order, wherever its partition is.
func TestRebalance(t *testing.T) {
	for _, x := range []struct {
		name       string
		g          embedded.Guarantee
		inCallback bool
	}{{"at-least-once", embedded.AtLeastOnce, false}, {"exactly-once", embedded.ExactlyOnce, false}, {"restore-in-callback", embedded.ExactlyOnce, true}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			on := everywhere
			if x.inCallback {
				on = each
			}
			on(t, func(w *world) { w.rebalance(x.g, x.inCallback) })
		})
	}
}

func (w *world) rebalance(g embedded.Guarantee, inCallback bool) {
	x := w.watch()
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	cfg := func() embedded.Config {
		c := w.config(w.t.TempDir(), g)
		c.RestoreInCallback = inCallback
		return c
	}
	a := w.member(cfg(), f)
	stop := w.feed()
	eventually(w.t, 90*time.Second, "the first has all", func() bool { return len(a.l.Ready()) == 4 })
	b := w.member(cfg(), f)
	eventually(w.t, 90*time.Second, "the second has two", func() bool { return len(b.l.Ready()) == 2 && len(a.l.Ready()) == 2 })
	c := w.member(cfg(), f)
	eventually(w.t, 90*time.Second, "the third has some", func() bool { return len(c.l.Ready()) > 0 })
	a.leave()
	eventually(w.t, 90*time.Second, "the two have all", func() bool { return len(b.l.Ready())+len(c.l.Ready()) == 4 })
	b.leave()
	eventually(w.t, 90*time.Second, "the last has all", func() bool { return len(c.l.Ready()) == 4 })
	stop()
	eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
	c.leave()
	x.check(w.t, w.seq, g)
}
