package streams_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// Connections break and answers get lost at random moments, again and again: commits are in
// doubt, offsets unknown, tasks reloaded. Nothing is counted twice or lost, in both guarantees.
func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	for _, c := range clients {
		for _, g := range guaranteesFor(t, c) {
			t.Run(c.Name()+"/"+g.String(), func(t *testing.T) { networkFaults(t, c, g) })
		}
	}
}

func networkFaults(t *testing.T, c kafka.Client, g streams.Guarantee) {
	t.Parallel()
	random := testseed.New(t)
	b := testbroker.Kfake(t)
	e := newEnv(t, b, c)
	cfg := e.config()
	cfg.Guarantee, cfg.CommitInterval = g, 10*time.Millisecond
	cfg.Settings.RequestTimeout = time.Second
	cfg.TransactionTimeout = 3 * time.Second
	app := e.start(e.wordCount(), cfg)
	app.catchUp()
	want := map[string]int64{}
	for range 12 {
		in, counts := lines(300)
		e.produce(in...)
		for w, n := range counts {
			want[w] += n
		}
		wait(time.Duration(random.IntN(40)) * time.Millisecond)
		switch random.IntN(2) {
		case 0:
			b.Network.Break()
		case 1:
			b.Network.LoseAnswers()
			wait(time.Duration(random.IntN(300)) * time.Millisecond)
		}
		b.Network.Heal()
	}
	app.catchUp()
	app.close()
	e.checkCounts(g, want)
}

// wait lets a random moment pass; it waits for nothing.
func wait(d time.Duration) { <-time.After(d) }

// checkCounts compares the outputs with an independent count: the last of each word in both
// guarantees; under exactly-once also that each number came exactly once.
func (e *env) checkCounts(g streams.Guarantee, want map[string]int64) {
	e.t.Helper()
	got, all := e.counts(e.out)
	if diff := cmp.Diff(want, got); diff != "" {
		e.t.Errorf("counts: -want +got\n%s", diff)
	}
	for w, counts := range all {
		if g == streams.AtLeastOnce {
			slices.Sort(counts)
			counts = slices.Compact(counts)
		}
		for i, n := range counts {
			if n != int64(i+1) {
				e.t.Fatalf("counts of %s: %v", w, counts)
			}
		}
	}
}

// A second process waits, takes over when the first is gone, and counts on.
func TestSecondProcessTakesOver(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		first := e.start(e.wordCount(), e.config())
		in, want := lines(300)
		e.produce(in...)
		first.catchUp()
		cfg := e.config()
		cfg.StateDir = t.TempDir()
		second := e.start(e.wordCount(), cfg)
		// The second joins, and does not run: there is one holder.
		kafkatest.Eventually(t, 90*time.Second, "two members", func() bool {
			g, err := e.admin.DescribeGroup(e.ctx(), e.app)
			return err == nil && len(g.Members) == 2 && g.State == "Stable"
		})
		running := func() int {
			n := 0
			for _, r := range []*running{first, second} {
				if r.State() == streams.Running {
					n++
				}
			}
			return n
		}
		kafkatest.Eventually(t, 90*time.Second, "one runs", func() bool { return running() == 1 })
		e.produce(in...)
		first.catchUp()
		first.close() // keeps its place until the session is over
		e.produce(in...)
		second.catchUp()
		second.close()
		for w := range want {
			want[w] *= 3
		}
		e.checkCounts(streams.ExactlyOnce, want) // nobody crashed: nothing repeats
	})
}

// A process that takes another's instance id fences it, and is fenced by it: in the end the old one, which was fenced first, stops
// and says who it is.
func TestInstanceIDTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		if e.client.Name() == "confluent" && !inChild(t) { // a fenced librdkafka consumer cannot be closed
			return
		}
		cfg := e.config()
		cfg.InstanceID = "the-one"
		first := e.start(e.wordCount(), cfg)
		first.catchUp()
		kafkatest.Eventually(t, 90*time.Second, "first runs", func() bool { return first.State() == streams.Running })
		cfg.StateDir = t.TempDir()
		second := e.start(e.wordCount(), cfg)
		err := first.failure()
		contains(t, err, "the-one", e.dir)
		if !kafka.IsClass(err, kafka.ClassInstanceFenced) {
			t.Errorf("class %v", kafka.ClassOf(err))
		}
		in, want := lines(100)
		e.produce(in...)
		second.catchUp()
		second.close()
		e.checkCounts(streams.AtLeastOnce, want)
	})
}

// A deadline that has passed drops what is not committed; the next run does it again.
func TestCloseDeadline(t *testing.T) {
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	stuck := make(chan struct{})
	topology := e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		if strings.HasPrefix(r.Value, "w0") {
			<-stuck
		}
		return ctx.Forward(r)
	}))
	e.produce("w0")
	cfg := e.config()
	cfg.Guarantee = streams.ExactlyOnce
	app := e.start(topology, cfg)
	kafkatest.Eventually(t, time.Minute, "running", func() bool { return app.State() == streams.Running })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	go func() {
		<-ctx.Done()
		wait(50 * time.Millisecond)
		close(stuck)
	}()
	contains(t, app.Close(ctx), "deadline exceeded", "processed again")
	t.Logf("Run: %v", <-app.res) // Close has said it
	app = e.start(topology, cfg)
	app.catchUp()
	app.close()
	if got := e.read(e.out); len(got) != 1 {
		t.Errorf("%d outputs", len(got))
	}
}

// A transactional id that an earlier run used and this one does not (it had more workers) is
// fenced at the start all the same: what it left open ends, and it cannot commit any more.
func TestOldWorkersAreFenced(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		cfg := e.config()
		cfg.Workers = 3
		app := e.start(e.wordCount(), cfg)
		app.catchUp()
		kafkatest.Eventually(t, 90*time.Second, "runs", func() bool { return app.State() == streams.Running })
		app.close()
		id, err := os.ReadFile(filepath.Join(e.dir, e.app, "process-id"))
		if err != nil {
			t.Fatal(err)
		}
		zombie, err := e.client.NewTransactional(kafka.Settings{Brokers: e.b.Addrs, Logger: discard},
			kafka.TransactionalConfig{ID: e.app + "-" + strings.TrimSpace(string(id)) + "-2", Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = zombie.Close(e.ctx()) }()
		if err := zombie.Init(e.ctx()); err != nil {
			t.Fatal(err)
		}
		if err := zombie.Begin(); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		record := kafka.Record{Topic: e.out, Timestamp: 1, Key: []byte("zombie"), Value: make([]byte, 8)}
		if err := zombie.Send(e.ctx(), []kafka.Record{record}, func(d kafka.Delivery) { sent <- d.Err }); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		cfg.Workers = 1
		in, want := lines(50)
		e.produce(in...)
		app = e.start(e.wordCount(), cfg)
		app.catchUp()
		if err := zombie.Commit(e.ctx()); !kafka.IsClass(err, kafka.ClassFenced) {
			t.Errorf("the zombie's commit: %v", err)
		}
		app.close()
		e.checkCounts(streams.ExactlyOnce, want)
	})
}
