package embedded

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// handLoop is a loop whose partitions are assigned by hand.
type handLoop interface {
	loop
	assign(ctx context.Context, topic string, numbers ...int32) error
}

type handDoor struct {
	name string
	open func(brokers []string, group string, cfg embedded.Config) (handLoop, error)
}

// handDoors are those of this build; cgo_test.go adds its own.
var handDoors = []handDoor{{"franz", franzHand}}

func franzHand(brokers []string, group string, cfg embedded.Config) (handLoop, error) {
	h, err := franz.Open(context.Background(), []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(50 * time.Millisecond)}, cfg)
	if err != nil {
		return nil, err
	}
	return franzLoop{h}, nil
}

func (l franzLoop) assign(ctx context.Context, topic string, numbers ...int32) error {
	return l.Assign(ctx, map[string][]int32{topic: numbers})
}

// byHand runs a test with both doors, on brokers.
func byHand(t *testing.T, test func(w *world, start func(embedded.Config) handLoop)) {
	for i, d := range handDoors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			brokers(t, i, func(t *testing.T, b testbroker.Broker) {
				w := newWorldOn(t, b, door{name: d.name})
				test(w, func(cfg embedded.Config) handLoop {
					l, err := d.open(w.b.Addrs, w.app+"-group", cfg)
					if err != nil {
						t.Fatal(err)
					}
					return l
				})
			})
		})
	}
}

// assigned runs a loop in the background, as member does for one that is subscribed.
func (w *world) assigned(l handLoop, f function, numbers ...int32) *member {
	w.t.Helper()
	if err := l.assign(context.Background(), w.in, numbers...); err != nil {
		w.t.Fatal(err)
	}
	return w.run(l, f)
}

// Partitions that are assigned by hand move between processes, come back after a restart, and are restored on a disk that is
// new, without a record lost or done twice.
func TestAssign(t *testing.T) {
	both(t, func(t *testing.T, g embedded.Guarantee) {
		byHand(t, func(w *world, start func(embedded.Config) handLoop) {
			x, ctx := w.watch(), context.Background()
			f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
			dirs := []string{w.t.TempDir(), w.t.TempDir(), w.t.TempDir()}
			la, lb := start(w.config(dirs[0], g)), start(w.config(dirs[1], g))
			a, b := w.assigned(la, f, 0, 1), w.assigned(lb, f, 2, 3)
			stop := w.feed()
			has := func(l loop, n int) func() bool { return func() bool { return len(l.Ready()) == n } }
			eventually(w.t, 90*time.Second, "both have two", func() bool { return has(la, 2)() && has(lb, 2)() })
			before := x.total()
			eventually(w.t, 90*time.Second, "records are counted", func() bool { return x.total() > before })
			if err := errors.Join(la.assign(ctx, w.in, 0), lb.assign(ctx, w.in, 1, 2, 3)); err != nil {
				w.t.Fatal(err)
			}
			eventually(w.t, 90*time.Second, "the second has three", func() bool { return has(la, 1)() && has(lb, 3)() })
			a.leave()
			lc := start(w.config(dirs[2], g)) // has nothing yet
			c := w.assigned(lc, f, 0)
			eventually(w.t, 90*time.Second, "the third has it", has(lc, 1))
			b.leave()
			ld := start(w.config(dirs[1], g))
			d := w.assigned(ld, f, 1, 2, 3)
			stop()
			eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
			c.leave()
			d.leave()
			x.check(w.t, w.seq, g)
		})
	})
}

// Of two processes that are assigned the same partitions by mistake the later has them; the earlier commits nothing more
// and says why.
func TestAssignedTwice(t *testing.T) {
	byHand(t, func(w *world, start func(embedded.Config) handLoop) {
		x := w.watch()
		f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
		la := start(w.config(w.t.TempDir(), embedded.ExactlyOnce))
		if err := la.assign(context.Background(), w.in, 0, 1, 2, 3); err != nil {
			w.t.Fatal(err)
		}
		told := make(chan error, 1)
		go func() { // ends with the host
			for la.Err() == nil {
				_ = la.poll(f)
			}
			told <- la.Err()
		}()
		stop := w.feed()
		eventually(w.t, 90*time.Second, "records are counted", func() bool { return x.total() > 100 })
		lb := start(w.config(w.t.TempDir(), embedded.ExactlyOnce))
		b := w.assigned(lb, f, 0, 1, 2, 3)
		select {
		case err := <-told:
			if !errors.Is(err, embedded.ErrTaken) {
				w.t.Error("the first stops with:", err)
			}
			wants(w.t, err, "-assigned-", "one process at a time")
		case <-time.After(30 * time.Second):
			w.t.Fatal("the first goes on")
		}
		w.close(la)
		before := x.total()
		eventually(w.t, 90*time.Second, "the second goes on", func() bool { return x.total() > before && len(lb.Ready()) == 4 })
		stop()
		eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
		b.leave()
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}

// A consumer is subscribed or assigned by hand, and so is its group.
func TestMisuseOfAssign(t *testing.T) {
	byHand(t, func(w *world, start func(embedded.Config) handLoop) {
		ctx := context.Background()
		f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
		w.open = doors[slices.IndexFunc(doors, func(d door) bool { return strings.HasPrefix(d.name, w.door) })].open
		m := w.member(w.config(w.t.TempDir(), embedded.AtLeastOnce), f)
		eventually(w.t, 90*time.Second, "it is a member", func() bool { return len(m.l.Ready()) == 4 })
		wants(w.t, m.l.(handLoop).assign(ctx, w.in, 0), "by hand")
		l := start(w.config(w.t.TempDir(), embedded.AtLeastOnce))
		wants(w.t, l.assign(ctx, w.in, 0), "-group has 1 members", "another group")
		m.leave()
		eventually(w.t, 90*time.Second, "the group is empty", func() bool { return l.assign(ctx, w.in, 0) == nil })
		eventually(w.t, 90*time.Second, "it is here", func() bool { return len(l.Ready()) == 1 })
		if err := l.assign(ctx, "no-such-topic", 0); err != nil {
			w.t.Error(err) // it is the host that says so, as with a subscription
		}
		eventually(w.t, 90*time.Second, "the host stops", func() bool { return l.Err() != nil })
		wants(w.t, l.Err(), "no-such-topic", "Config.Topics")
		w.close(l)
	})
}

// A commit in doubt, and a transaction that the broker has ended because it took too long, are not another process: the host goes on.
func TestAssignedBrokerAway(t *testing.T) {
	both(t, func(t *testing.T, g embedded.Guarantee) {
		for _, d := range handDoors {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				w := newWorldOn(t, testbroker.Kfake(t), door{name: d.name})
				x := w.watch()
				cfg := w.config(t.TempDir(), g)
				cfg.TransactionTimeout = time.Second
				l, err := d.open(w.b.Addrs, w.app+"-group", cfg)
				if err != nil {
					t.Fatal(err)
				}
				a := w.assigned(l, func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }, 0, 1, 2, 3)
				for i := range 4 {
					before := x.total()
					w.produce(200)
					eventually(t, 90*time.Second, "records are counted", func() bool { return x.total() > before || l.Err() != nil })
					w.b.Network.LoseAnswers()
					pause := time.NewTimer([]time.Duration{200 * time.Millisecond, 2 * time.Second}[i%2]) // commits go on and get no answer
					<-pause.C
					w.b.Network.Heal()
				}
				// Under at-least-once the outputs come before the commit, which may still be in trouble.
				eventually(t, 90*time.Second, "all records are counted and committed", func() bool {
					return l.Err() != nil || x.reached(w.seq) && len(l.Ready()) == 4 && l.Commit(context.Background()) == nil
				})
				if err := l.Err(); err != nil {
					t.Error(err)
				}
				a.leave()
				x.check(t, w.seq, g)
			})
		}
	})
}
