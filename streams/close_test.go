package streams_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// A context that has ended does not make a closed application look like one that was cut off,
// and closing what never ran is no panic.
func TestCloseWithAnEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a select among what is ready is random
		var s states
		app, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{"127.0.0.1:1"}, StateDir: t.TempDir(), StateListener: s.listen, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := app.Close(ended); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"created>closed"}; !slices.Equal(s.seen, want) {
			t.Fatalf("states %v, want %v", s.seen, want)
		}
		contains(t, app.Run(t.Context()), "closed")
	}
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	app := e.start(e.wordCount(), e.config())
	app.catchUp()
	app.close()
	for range 20 {
		if err := app.Close(ended); err != nil {
			t.Fatal(err)
		}
	}
}

// An application that cannot reach its broker ends at once when it is told to, and without an
// error: it has lost nothing.
func TestCloseWhileBrokerIsUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, c := range clients {
		for name, stop := range map[string]func(*streams.App, context.CancelFunc){
			"close": func(app *streams.App, _ context.CancelFunc) { _ = app.Close(t.Context()) },
			"ctx":   func(_ *streams.App, cancel context.CancelFunc) { cancel() },
		} {
			t.Run(c.Name()+"/"+name, func(t *testing.T) {
				app, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{l.Addr().String()}, StateDir: t.TempDir(), Client: c, StartTimeout: time.Minute, Logger: discard})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				res := make(chan error, 1)
				go func() { res <- app.Run(ctx) }()
				for app.State() != streams.Starting {
					<-app.Changed()
				}
				wait(100 * time.Millisecond)
				start := time.Now()
				stop(app, cancel)
				if err := <-res; err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

// An application may be closed at any moment, gently or not, and started again.
func TestCloseAtAnyMoment(t *testing.T) {
	for _, c := range clients {
		for _, g := range guarantees {
			t.Run(c.Name()+"/"+g.String(), func(t *testing.T) {
				t.Parallel()
				rounds := 12
				if c.Name() == "confluent" { // it takes half a second to close
					rounds = 4
				}
				random := testseed.New(t)
				e := newEnv(t, testbroker.Kfake(t), c)
				cfg := e.config()
				cfg.Guarantee, cfg.CommitInterval, cfg.Workers = g, 5*time.Millisecond, 3
				want := map[string]int64{}
				for i := range rounds {
					in, counts := lines(100)
					e.produce(in...)
					for w, n := range counts {
						want[w] += n
					}
					app, err := streams.New(e.wordCount(), cfg)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					res := make(chan error, 1)
					go func() { res <- app.Run(ctx) }()
					wait(time.Duration(random.IntN(150)) * time.Millisecond)
					start := time.Now()
					switch random.IntN(3) {
					case 0:
						cancel()
						if err := <-res; err != nil {
							t.Errorf("%d: Run: %v", i, err)
						}
					case 1:
						if err := app.Close(e.ctx()); err != nil {
							t.Errorf("%d: Close: %v", i, err)
						}
					case 2:
						ended, stop := context.WithCancel(t.Context())
						stop()
						_ = app.Close(ended)
					}
					if took := time.Since(start); took > 8*time.Second {
						t.Errorf("%d: closing took %v", i, took)
					}
					cancel()
				}
				app := e.start(e.wordCount(), cfg)
				app.catchUp()
				app.close()
				e.checkCounts(g, want)
			})
		}
	}
}

// A goroutine that user code ends (as t.FailNow does) must not leave the application waiting
// for it for ever.
func TestGoexitInUserCode(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1, Value: []byte("x")})
	app := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error {
		runtime.Goexit()
		return nil
	})), e.config())
	app.fails("worker 0", "Goexit")
}
