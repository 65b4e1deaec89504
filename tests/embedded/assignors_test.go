package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// The assignors that the doors of the other tests do not have.
func TestOtherAssignors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*world){
		"rebalance": func(w *world) { w.rebalance(embedded.ExactlyOnce, false) },
		"restart":   func(w *world) { w.restarts(embedded.ExactlyOnce) },
		"protocol":  (*world).protocol,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, otherAssignors, test)
		})
	}
}

// protocol checks that the group of a door has the protocol that its name says.
func (w *world) protocol() {
	l := w.start(w.config(w.t.TempDir(), embedded.ExactlyOnce))
	w.until(l, func(*embedded.Task, record) error { return nil }, "all are here", func() bool { return len(l.Ready()) == 4 })
	cl := w.client()
	defer cl.Close()
	want := "classic"
	if !w.classic {
		want = "consumer"
	}
	if all, err := kadm.NewClient(cl).ListGroups(context.Background()); err != nil || all[w.app+"-group"].GroupType != want {
		w.t.Errorf("the group is %+v, want type %s; %v", all[w.app+"-group"], want, err)
	}
	w.close(l)
}

// A static member that is restarted has its partitions again at once, and the other keeps its own meanwhile.
func TestStaticMember(t *testing.T) {
	t.Parallel()
	for i, name := range slices.Sorted(maps.Keys(staticDoors)) {
		open := staticDoors[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers(t, i, func(t *testing.T, b testbroker.Broker) {
				var taken, of atomic.Int32
				w := newWorldOn(t, b, door{name: name, open: open("one", &taken)})
				x := w.watch()
				f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
				a := w.member(w.config(w.t.TempDir(), embedded.ExactlyOnce), f)
				eventually(t, 90*time.Second, "the first has all", func() bool { return len(a.l.Ready()) == 4 })
				w.open = open("two", &of)
				dir := w.t.TempDir()
				second := func() *member {
					m := w.member(w.config(dir, embedded.ExactlyOnce), f)
					eventually(t, 90*time.Second, "each has two", func() bool { return len(m.l.Ready()) == 2 && len(a.l.Ready()) == 2 })
					return m
				}
				c := second()
				stop := w.feed()
				before := taken.Load()
				for range 3 {
					had := fmt.Sprint(sorted(c.l.Ready()))
					c.leave()
					c = second()
					if has := fmt.Sprint(sorted(c.l.Ready())); has != had {
						t.Errorf("the second had %v, and has %v after its restart", had, has)
					}
				}
				if n := taken.Load() - before; n != 0 {
					t.Errorf("%d rebalances took partitions from the first", n)
				}
				stop()
				eventually(t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
				c.leave()
				a.leave()
				x.check(t, w.seq, embedded.ExactlyOnce)
			})
		})
	}
}

// Partition n of two topics is one task, whose store both of them use, also when it moves.
func TestTwoTopics(t *testing.T) {
	t.Parallel()
	on(t, rangeDoors, func(w *world) {
		x := w.watch()
		second := w.b.CreateTopic(w.t, "second", 4, nil)
		f := func(t *embedded.Task, r record) error {
			if r.topic == second {
				return counts.In(t).Put(r.key+"/second", int64(r.partition))
			}
			p, ok, err := counts.In(t).Get(r.key + "/second")
			if err != nil || !ok || p != int64(r.partition) || p != int64(t.Partition()) {
				return fmt.Errorf("the other topic's record of key %s is in the store: %v, of partition %d; this is partition %d of task %d: %w", r.key, ok, p, r.partition, t.Partition(), err)
			}
			return count(t, r.key, w.out)
		}
		cfg := func() embedded.Config {
			c := w.config(w.t.TempDir(), embedded.ExactlyOnce)
			c.Topics = []string{w.in, second}
			return c
		}
		member := func() *member {
			l, err := w.open(w.b.Addrs, w.app+"-group", []string{w.in, second}, cfg())
			if err != nil {
				w.t.Fatal(err)
			}
			return w.run(l, f)
		}
		first := w.in
		w.in = second
		w.produce(10) // every key once
		w.in, w.seq = first, 0
		a := member()
		eventually(w.t, 90*time.Second, "the second topic is in the store", func() bool { return a.l.Status().Processed == 10 })
		stop := w.feed()
		b := member()
		eventually(w.t, 90*time.Second, "each has two partitions of two topics", func() bool { return len(a.l.Ready()) == 4 && len(b.l.Ready()) == 4 })
		before := x.total()
		eventually(w.t, 90*time.Second, "records are counted", func() bool { return x.total() > before })
		a.leave()
		eventually(w.t, 90*time.Second, "the other has all", func() bool { return len(b.l.Ready()) == 8 })
		stop()
		eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
		b.leave()
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}
