package embedded

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testlog"
)

// A process that is started after a kill -9 says once that it waits, for which group and why, as long as the killed member has its
// place; then it works.
func TestWaitAfterKillIsTold(t *testing.T) {
	t.Parallel()
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := testbroker.Kfake(t, kfake.BrokerConfigs(map[string]string{"group.consumer.heartbeat.interval.ms": "200"}))
			first := keepDead(b.Cluster)
			w := newWorldOn(t, b, d)
			x := w.watch()
			w.produce(20)
			p := w.spawn(d.name, embedded.AtLeastOnce.String(), b.Addrs[0], w.app, w.in, w.out, t.TempDir(), "", "")
			eventually(t, 90*time.Second, "the process has counted", func() bool { return x.reached(w.seq) })
			p.kill()

			f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
			var log testlog.Log
			cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
			cfg.Logger = log.Logger()
			l := w.start(cfg)
			told := func() int {
				return log.Count("level=INFO", "waiting for a place in the group", "group="+w.app+"-group ", "first partitions")
			}
			w.until(l, f, "the wait is told", func() bool { return told() > 0 })
			w.endSession(first())
			w.until(l, f, "all are here", func() bool { return len(l.Ready()) == 4 })
			w.produce(20)
			w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
			w.close(l)
			if n := told(); n != 1 {
				t.Errorf("told %d times: %s", n, log.String())
			}
		})
	}
}

// A host that has partitions says nothing, whoever else has them; one for whom there are none says so, or that this may be.
func TestWaitOfStandby(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		opened := time.Now()
		var busy, idle testlog.Log
		open := func(log *testlog.Log) loop {
			cfg := w.config(w.t.TempDir(), embedded.AtLeastOnce)
			cfg.Logger = log.Logger()
			return w.start(cfg)
		}
		f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
		loops := []loop{open(&busy), open(&busy), open(&busy), open(&busy)} // a partition each
		every := func(l loop) { _ = l.poll(f) }
		ready := func() (n int) {
			for _, l := range loops {
				every(l)
				if len(l.Ready()) == 1 {
					n++
				}
			}
			return n
		}
		eventually(w.t, 90*time.Second, "each has a partition", func() bool { return ready() == 4 })
		inTime := time.Since(opened) < 4*time.Second // on a slow machine they have to wait, and may say it
		standby := open(&idle)
		eventually(w.t, 90*time.Second, "the fifth says that it waits", func() bool {
			ready()
			every(standby)
			return idle.Count("waiting for a place in the group", "first partitions", "if they run, this process stands by") == 1 ||
				idle.Count("waiting for a place in the group", "first partitions", "or other members have all of them") == 1 ||
				len(standby.Ready()) == 1 // ranges go by the members' ids: it may be another that has none any more
		})
		for _, l := range append(loops, standby) {
			w.close(l)
		}
		if n := busy.Count("waiting for a place in the group"); n > 0 && inTime {
			w.t.Errorf("told %d times by hosts that have partitions: %s", n, busy.String())
		}
	})
}

// keepDead makes sessions and rebalances so long that a killed member is one until it is taken out. first is the
// id of the first member, where the group's protocol is the broker's.
func keepDead(cluster *kfake.Cluster) (first func() string) {
	const long = 60_000
	var id atomic.Pointer[string]
	cluster.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) { // the form is kfake's
		req := r.(*kmsg.JoinGroupRequest)
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = long, long
		return nil, nil, false
	})
	cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.ConsumerGroupHeartbeatRequest)
		if req.RebalanceTimeoutMillis > 0 {
			req.RebalanceTimeoutMillis = long
		}
		if req.MemberID != "" {
			id.CompareAndSwap(nil, &req.MemberID)
		}
		return nil, nil, false
	})
	return func() string {
		if p := id.Load(); p != nil {
			return *p
		}
		return ""
	}
}

// endSession takes every process but this one out of the group; where the group's protocol is the broker's, the member of this id.
func (w *world) endSession(member string) {
	w.t.Helper()
	if w.classic {
		if n := w.evict(map[string]bool{clientID: true}); n != 1 {
			w.t.Fatalf("%d members were evicted", n)
		}
		return
	}
	cl := w.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	leave := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	leave.Group, leave.MemberID, leave.MemberEpoch = w.app+"-group", member, -1
	if _, err := leave.RequestWith(ctx, cl); err != nil {
		w.t.Fatal(err)
	}
}
