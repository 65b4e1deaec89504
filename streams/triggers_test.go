package streams_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// Everything but the interval that lets a worker commit, with an interval that never ends.
func TestCommitTriggers(t *testing.T) {
	b := testbroker.Kfake(t)
	pass := func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		return ctx.Forward(r)
	}
	for name, c := range map[string]struct {
		process work
		change  func(cfg *streams.Config)
	}{
		"records": {pass, func(cfg *streams.Config) { cfg.Limits.CommitRecords = 1 }},
		"asked for": {func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			ctx.Commit()
			return ctx.Forward(r)
		}, func(*streams.Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, b, clients[0])
			cfg := e.config()
			cfg.CommitInterval = time.Hour
			c.change(&cfg)
			e.produce("a", "b")
			app := e.start(e.one(each(c.process)), cfg)
			app.catchUp()
			app.close()
		})
	}
}

// A task that has nothing to do commits its offsets again and again: the broker would expire
// them.
func TestIdleTaskCommitsAgain(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	cfg := e.config()
	cfg.CommitInterval, cfg.Limits.IdleCommitInterval = time.Millisecond, 20*time.Millisecond
	app := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error { return nil })), cfg)
	app.catchUp()
	kafkatest.Eventually(t, time.Minute, "three commits of each task", func() bool {
		s := app.Status().Workers[0]
		return len(s.Tasks) == 2 && s.Tasks[0].CommitID.Number >= 3 && s.Tasks[1].CommitID.Number >= 3
	})
	app.close()
}

// While one interval is being committed the next one stops at its bound: at most one is sealed,
// and memory is bounded.
func TestNextIntervalWaitsAtItsBound(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	var seen atomic.Int64
	release := make(chan struct{})
	var armed atomic.Bool
	held := make(chan struct{})
	client := hooked{e.client, func() error {
		if armed.CompareAndSwap(true, false) {
			close(held)
			<-release
		}
		return nil
	}}
	topology := e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		seen.Add(1)
		return ctx.Forward(processor.WithValue(r, strings.Repeat("x", 10<<10)))
	}))
	cfg := e.config()
	cfg.Guarantee, cfg.Client, cfg.CommitInterval, cfg.Limits.MaxHeldBytes = streams.ExactlyOnce, client, time.Millisecond, 100<<10
	app := e.start(topology, cfg)
	app.catchUp()
	armed.Store(true)
	e.produce("first")
	<-held
	before := seen.Load()
	var many []string
	for range 200 {
		many = append(many, "x")
	}
	e.produce(many...)
	// Ten records of 10 KiB reach the bound. That no more come is waited for.
	kafkatest.Eventually(t, time.Minute, "the bound", func() bool { return seen.Load()-before >= 10 })
	wait(100 * time.Millisecond)
	if n := seen.Load() - before; n > 20 {
		t.Errorf("%d records were processed behind the sealed interval", n)
	}
	close(release)
	app.catchUp()
	app.close()
	if got := len(e.read(e.out)); got != 201 {
		t.Errorf("%d outputs", got)
	}
}
