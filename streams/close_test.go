package streams_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/migration"
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
	t.Parallel()
	for _, c := range clients {
		for _, g := range guaranteesFor(t, c) {
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
						t.Logf("Run: %v", <-res) // that it ends is the point
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

// The broker answers nothing any more. Close returns by its deadline, whatever hangs, and says what
// it left behind; Run returns soon after.
func TestCloseWhileBrokerIsGone(t *testing.T) {
	for _, c := range clients {
		for _, g := range guaranteesFor(t, c) {
			for name, after := range map[string]time.Duration{"running": 300 * time.Millisecond, "starting": 0} {
				t.Run(c.Name()+"/"+g.String()+"/"+name, func(t *testing.T) {
					t.Parallel()
					b := testbroker.Kfake(t)
					e := newEnv(t, b, c)
					cfg := e.config()
					cfg.Guarantee, cfg.CommitInterval, cfg.Workers = g, 5*time.Millisecond, 2
					in, want := lines(300)
					e.produce(in...)
					app := e.start(e.wordCount(), cfg)
					if after > 0 {
						app.catchUp()
						e.produce(in...)
						for w := range want {
							want[w] *= 2
						}
					} else {
						for app.State() == streams.Created {
							<-app.Changed()
						}
					}
					b.Network.LoseAnswers()
					wait(after)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					start := time.Now()
					err := app.Close(ctx)
					if took := time.Since(start); took > 3200*time.Millisecond {
						t.Errorf("Close took %v: %v", took, err)
					}
					if err != nil { // a commit that fails in time is dropped without one
						contains(t, err, "deadline exceeded", "processed again")
					}
					select {
					case err := <-app.res:
						t.Logf("Run: %v", err)
					case <-time.After(10 * time.Second):
						t.Fatal("Run does not return")
					}
					b.Network.Heal()
					app = e.start(e.wordCount(), cfg)
					app.catchUp()
					app.close()
					e.checkCounts(g, want)
				})
			}
		}
	}
}

// User code that hangs is left behind, and named.
func TestCloseWhileUserCodeHangs(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1, Value: []byte("x")})
	entered, leave := make(chan struct{}), make(chan struct{})
	app := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error {
		close(entered)
		<-leave
		return nil
	})), e.config())
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	contains(t, app.Close(ctx), "deadline exceeded", "abandoned", "worker 0 (running)", "processed again")
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
	close(leave)
	if err := <-app.res; err == nil {
		t.Error("Run says that all is well")
	}
}

// hanging is a client of which one step does not come back, whatever the context says.
type hanging struct {
	kafka.Client
	step string
	hang func()
}

func (c hanging) at(step string) {
	if c.step == step {
		c.hang()
	}
}

func (c hanging) NewAdmin(s kafka.Settings) (kafka.Admin, error) {
	a, err := c.Client.NewAdmin(s)
	return hangingAdmin{a, c}, err
}

func (c hanging) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	c.at("membership")
	return c.Client.NewMembership(s, cfg)
}

func (c hanging) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	c.at("worker")
	return c.Client.NewTransactional(s, cfg)
}

type hangingAdmin struct {
	kafka.Admin
	c hanging
}

func (a hangingAdmin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	a.c.at("topics")
	return a.Admin.Topics(ctx, names...)
}

func (a hangingAdmin) Close(ctx context.Context) error {
	a.c.at("end")
	return a.Admin.Close(ctx)
}

// Whatever step hangs, Close names it.
func TestCloseNamesWhatHangs(t *testing.T) {
	for step, words := range map[string]string{"topics": "preparing the topics", "migration": "migrating the task directories", "membership": "joining the group",
		"worker": "worker 0 (opening)", "end": "closing the admin client"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testbroker.Kfake(t), clients[0])
			entered, leave := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(entered) })
			hang := func() {
				once()
				<-leave
			}
			cfg := e.config()
			cfg.Client = hanging{e.client, step, hang}
			if step == "migration" {
				dir := filepath.Join(e.dir, e.app, "1_0")
				must(t, os.MkdirAll(dir, 0o755))
				must(t, os.WriteFile(filepath.Join(dir, ".checkpoint"), []byte("0\n1\n"+e.app+"-counts-changelog 0 5\n"), 0o600))
				cfg.Migration.CleanShutdown = true
				cfg.Migration.Sources = map[string]migration.OpenSource{"counts": func(string) (migration.Source, error) {
					hang()
					return nil, errors.New("it cannot be opened")
				}}
			}
			app := e.start(e.wordCount(), cfg)
			if step == "end" {
				app.catchUp()
			} else {
				select {
				case <-entered:
				case <-e.ctx().Done():
					t.Fatalf("it does not come so far: %v", app.State())
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			contains(t, app.Close(ctx), "abandoned", words)
			close(leave)
			select {
			case err := <-app.res:
				t.Log("Run:", err)
			case <-e.ctx().Done():
				t.Fatal("Run does not return")
			}
		})
	}
}
