package embedded

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/embedded"
)

// pollInterval is the max.poll.interval.ms of the confluent doors, and the rebalance timeout of the others.
const pollInterval = 5 * time.Second

// A restore takes longer than the poll interval, and another member joins in the middle of it. Beside the loop that costs
// nobody his place, and the other gets his share. In the assign callback it does: the group goes on without the
// member, which takes part again when its restore is done, with what it has restored. Either way each record counts
// once, in order.
func TestRestoreLongerThanThePollInterval(t *testing.T) {
	t.Parallel()
	for name, inCallback := range map[string]bool{"beside the loop": false, "in the callback": true} {
		t.Run(name, func(t *testing.T) {
			if inCallback && testing.Short() {
				t.Skip("it waits for the group to drop members, several times")
			}
			t.Parallel()
			each(t, func(w *world) { w.longRestore(inCallback) })
		})
	}
}

func (w *world) longRestore(inCallback bool) {
	x := w.watch()
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	cfg := func() embedded.Config {
		c := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		c.RestoreInCallback = inCallback
		return c
	}
	inCallback = inCallback || w.door == consumerProtocol // which knows no other way
	w.produce(200)
	l := w.start(cfg())
	w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
	w.close(l)

	held, release := w.holdReads(w.app + "-counts-changelog")
	defer release()
	a := w.member(cfg(), f)
	select {
	case <-held:
	case <-time.After(30 * time.Second):
		w.t.Fatal("no restore has begun")
	}
	begun := time.Now()
	b := w.member(cfg(), f)
	w.produce(100)
	var members []string
	if !inCallback {
		eventually(w.t, 90*time.Second, "both are members", func() bool { members = w.members(); return len(members) == 2 })
		begun = time.Now()
	}
	eventually(w.t, 90*time.Second, "the restore takes longer than the poll interval", func() bool { return time.Since(begun) > pollInterval+time.Second })
	if !inCallback {
		if now := w.members(); !slices.Equal(now, members) {
			w.t.Errorf("members %q, then %q", members, now)
		}
		if n := len(a.l.Ready()) + len(b.l.Ready()); n > 0 {
			w.t.Errorf("%d partitions are ready, and were not restored", n)
		}
	}
	release()
	eventually(w.t, 90*time.Second, "both have two", func() bool { return len(a.l.Ready()) == 2 && len(b.l.Ready()) == 2 })
	w.produce(100)
	eventually(w.t, 90*time.Second, "all records are counted", func() bool { return x.reached(w.seq) })
	a.leave()
	b.leave()
	x.check(w.t, w.seq, embedded.ExactlyOnce)
}

// holdReads has the broker answer nobody who reads a topic, until released. held tells when somebody tries.
func (w *world) holdReads(topic string) (held <-chan struct{}, release func()) {
	w.t.Helper()
	info := w.b.Cluster.TopicInfo(topic)
	if info == nil {
		w.t.Fatalf("there is no topic %s", topic)
	}
	tried, free := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	w.b.Cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if slices.ContainsFunc(req.(*kmsg.FetchRequest).Topics, func(x kmsg.FetchRequestTopic) bool { return x.Topic == topic || x.TopicID == info.TopicID }) {
			first.Do(func() { close(tried) })
			w.b.Cluster.SleepControl(func() { <-free })
		}
		return nil, nil, false
	})
	return tried, func() { last.Do(func() { close(free) }) }
}

// members gives the ids of the group's members, when no rebalance is under way.
func (w *world) members() (ids []string) {
	w.t.Helper()
	cl := w.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	group := w.describe(ctx, cl)
	if group.State != "Stable" {
		return nil
	}
	for _, m := range group.Members {
		ids = append(ids, fmt.Sprint(m.ClientID, " ", m.MemberID))
	}
	slices.Sort(ids)
	return ids
}
