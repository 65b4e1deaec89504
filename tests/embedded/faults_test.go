package embedded

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/embedded"
)

// client is one of the test's own, to be closed.
func (w *world) client() *kgo.Client {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.b.Addrs...))
	if err != nil {
		w.t.Fatal(err)
	}
	return cl
}

// describe gives what the broker tells of the group.
func (w *world) describe(ctx context.Context, cl *kgo.Client) kadm.DescribedGroup {
	w.t.Helper()
	group := w.app + "-group"
	d, err := kadm.NewClient(cl).DescribeGroups(ctx, group)
	if err != nil {
		w.t.Fatalf("describe group: %v", err)
	}
	return d[group]
}

// evict takes members out of the group whose client id is not among the given, as the end of a session
// does, and gives how many there were.
func (w *world) evict(keep map[string]bool) int {
	w.t.Helper()
	cl := w.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	group := w.describe(ctx, cl)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group.Group
	for _, m := range group.Members {
		if !keep[m.ClientID] {
			x := kmsg.NewLeaveGroupRequestMember()
			x.MemberID = m.MemberID
			leave.Members = append(leave.Members, x)
		}
	}
	if len(leave.Members) > 0 {
		if _, err := leave.RequestWith(ctx, cl); err != nil {
			w.t.Fatalf("leave group: %v", err)
		}
	}
	return len(leave.Members)
}

// A member that the group has dropped without its knowledge commits nothing any more, and begins anew.
func TestLostMembership(t *testing.T) {
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				if !w.classic {
					w.t.Skip("members of this protocol cannot be evicted")
				}
				x := w.watch()
				f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
				a := w.member(w.config(w.t.TempDir(), g), f)
				stop := w.feed()
				for range 3 {
					eventually(w.t, 90*time.Second, "all are here", func() bool { return len(a.l.Ready()) == 4 })
					before := x.total()
					eventually(w.t, 90*time.Second, "records are counted", func() bool { return x.total() > before })
					eventually(w.t, 90*time.Second, "it is a member, and evicted", func() bool { return w.evict(nil) == 1 })
				}
				stop()
				// Under at-least-once the outputs come before the commit that finds out.
				eventually(w.t, 90*time.Second, "all records are counted and committed", func() bool {
					return x.reached(w.seq) && len(a.l.Ready()) == 4 && a.l.Commit(context.Background()) == nil
				})
				a.leave()
				x.check(w.t, w.seq, g)
			})
		})
	}
}

// While no answer of the broker comes, and when connections break, commits are in doubt; nothing is lost or done twice.
func TestBrokerAway(t *testing.T) {
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				x := w.watch()
				f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
				a := w.member(w.config(w.t.TempDir(), g), f)
				for range 5 {
					before := x.total()
					w.produce(200)
					eventually(w.t, 90*time.Second, "records are counted", func() bool { return x.total() > before })
					w.b.Network.LoseAnswers()
					pause := time.NewTimer(300 * time.Millisecond) // commits go on and get no answer
					<-pause.C
					w.b.Network.Heal()
				}
				// Under at-least-once the outputs come before the commit, which may still be in doubt.
				eventually(w.t, 90*time.Second, "all records are counted and committed", func() bool {
					return x.reached(w.seq) && a.l.Commit(context.Background()) == nil
				})
				a.leave()
				x.check(w.t, w.seq, g)
			})
		})
	}
}

// total is the number of outputs so far.
func (x *watch) total() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.counts {
		n += len(c)
	}
	return n
}

// A partition begins at its position, not at the start or the end of the log, and the loop goes on while it is restored
// (an assignment that is paused loses its offset with librdkafka).
func TestBeginsAtPosition(t *testing.T) {
	each(t, func(w *world) {
		dir := w.t.TempDir()
		for _, lost := range []bool{false, false, true} {
			if lost {
				dir = w.t.TempDir()
			}
			from := w.seq
			w.produce(2000)
			l := w.start(w.config(dir, embedded.ExactlyOnce))
			seen, early := 0, 0
			f := func(t *embedded.Task, r record) error {
				if n, _ := strconv.Atoi(r.value); n < from {
					early++
				}
				seen++
				err := counts.In(t).Put(r.value, 1)
				return err
			}
			w.until(l, f, "the new records came", func() bool { return seen >= 2000 })
			w.close(l)
			if seen != 2000 || early != 0 {
				w.t.Errorf("from record %d on: %d records, %d of them old", from, seen, early)
			}
		}
	})
}
