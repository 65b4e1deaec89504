package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/task"
)

// within fails the test when f takes longer.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ended below
		defer close(done)
		f()
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Errorf("%s takes longer than %v", what, d)
		<-done
	}
}

// Whatever a broker that does not answer holds up, the host tells what it knows, and Commit and Close end with their contexts. The next
// host goes on from what was committed.
func TestBusyHostAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		cfg.TransactionTimeout, cfg.Limits.RetryTimeout = time.Second, time.Second
		x := w.watch()
		l := w.start(cfg)
		w.produce(100)
		got := 0
		f := func(t *embedded.Task, r record) error { got++; return count(t, r.key, w.out) }
		w.until(l, f, "all came", func() bool { return got >= 100 })
		w.b.Network.LoseAnswers()
		late := time.AfterFunc(40*time.Second, w.b.Network.Heal) // a test that has failed ends too
		defer late.Stop()
		defer w.b.Network.Heal()
		eventually(w.t, 90*time.Second, "the host waits for the broker", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			var err error
			within(w.t, 5*time.Second, "Commit", func() { err = l.Commit(ctx) })
			return errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, task.ErrUnderWay)
		})
		within(w.t, time.Second, "the rest", func() {
			if err := l.Err(); err != nil || len(l.Ready()) == 0 || len(l.Status().Tasks) == 0 {
				w.t.Error(err, l.Ready(), l.Status())
			}
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		within(w.t, 15*time.Second, "Close", func() { _ = l.Close(ctx) }) // librdkafka takes some seconds of its own
		if !errors.Is(l.Err(), embedded.ErrClosed) || len(l.Ready()) > 0 {
			w.t.Error(l.Err(), l.Ready())
		}
		w.b.Network.Heal()
		if f, ok := l.(franzLoop); ok { // which Close does not wait for longer than it may
			<-f.Client().Context().Done()
		}
		l = w.start(cfg)
		w.produce(100)
		w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) })
		w.close(l)
		x.check(w.t, w.seq, embedded.ExactlyOnce)
	})
}

// A commit that is not waited for goes on.
func TestCommitGoesOn(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		x := w.watch()
		cfg := w.config(w.t.TempDir(), embedded.ExactlyOnce)
		cfg.Limits.CommitInterval = time.Hour
		l := w.start(cfg)
		w.produce(50)
		got := 0
		f := func(t *embedded.Task, r record) error { got++; return count(t, r.key, w.out) }
		w.until(l, f, "all came", func() bool { return got >= 50 })
		ctx, cancel := context.WithDeadline(context.Background(), time.Now())
		defer cancel()
		if err := l.Commit(ctx); !errors.Is(err, task.ErrUnderWay) || !errors.Is(err, context.DeadlineExceeded) {
			w.t.Error("commit:", err)
		}
		w.until(l, f, "they are committed", func() bool { return x.reached(w.seq) })
		if got != 50 || len(w.told) > 0 {
			w.t.Errorf("%d records, %v", got, w.told)
		}
		w.close(l)
	})
}

// What the host tells can be asked for from within the function.
func TestAskedFromWithin(t *testing.T) {
	w := newWorld(t, doors[0])
	w.produce(10)
	l := w.start(w.config(w.t.TempDir(), embedded.AtLeastOnce)).(franzLoop)
	got := 0
	f := func(*embedded.Task, record) error {
		got++
		within(t, 5*time.Second, "asking", func() {
			if l.Err() != nil || len(l.Ready()) != 4 || len(l.Status().Tasks) != 4 || l.StoreStats().TaskStores != 4 {
				t.Error(l.Err(), l.Ready(), l.Status(), l.StoreStats())
			}
		})
		return nil
	}
	w.until(l, f, "all came", func() bool { return got >= 10 })
	w.close(l)
}

// Of a task that has several inputs all or none are assigned, and only partitions that there are.
func TestAssignedInPart(t *testing.T) {
	w := newWorldOn(t, testbroker.Kfake(t), door{name: "franz"})
	cfg := w.config(t.TempDir(), embedded.AtLeastOnce)
	cfg.Topics = []string{w.in, w.out}
	cfg.Outputs = nil
	h, err := franz.Open(t.Context(), []kgo.Opt{kgo.SeedBrokers(w.b.Addrs...), kgo.ConsumerGroup(w.app + "-group")}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := franzLoop{h}
	wants(t, h.Assign(t.Context(), map[string][]int32{w.in: {0, 1}, w.out: {0}}), w.out+"-1 is not among them")
	if err := h.Assign(t.Context(), map[string][]int32{w.in: {0}, w.out: {0}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 90*time.Second, "both are here", func() bool { return len(l.Ready()) == 2 })
	wants(t, h.Assign(t.Context(), map[string][]int32{w.in: {0}}), w.out+"-0 is not among them")
	if len(l.Ready()) != 2 {
		t.Error(l.Ready(), l.Err())
	}
	if err := h.Assign(t.Context(), map[string][]int32{w.in: {0, 4}, w.out: {0, 4}}); err != nil {
		t.Error(err)
	}
	eventually(t, 90*time.Second, "the host stops", func() bool { return l.Err() != nil })
	wants(t, l.Err(), "partition 4", "had 4 partitions")
	w.close(l)
}

// The counters of a host do not go down when a partition leaves.
func TestCountersGoUp(t *testing.T) {
	w := newWorldOn(t, testbroker.Kfake(t), door{name: "franz"})
	x := w.watch()
	w.produce(50)
	l, err := franzHand(w.b.Addrs, w.app+"-group", w.config(t.TempDir(), embedded.AtLeastOnce))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.assign(t.Context(), w.in, 0, 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	f := func(t *embedded.Task, r record) error { return count(t, r.key, w.out) }
	w.until(l, f, "all records are counted", func() bool { return x.reached(w.seq) && l.Commit(t.Context()) == nil })
	before := l.Status()
	for _, numbers := range [][]int32{{1, 2}, {}, {3}} {
		if err := l.assign(t.Context(), w.in, numbers...); err != nil {
			t.Fatal(err)
		}
		w.until(l, f, "they are here", func() bool { return len(l.Ready()) == len(numbers) })
		if s := l.Status(); s.Processed != 50 || s.Commits < before.Commits || s.CommitTime < before.CommitTime || s.Name != before.Name || len(s.Tasks) != len(numbers) {
			t.Errorf("with %v: %+v, before %+v", numbers, s, before)
		}
	}
	w.close(l)
}
