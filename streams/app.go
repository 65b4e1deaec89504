package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// App is a stream application in this process.
type App struct {
	topology *Topology
	cfg      Config
	log      *slog.Logger

	stopping    context.Context // ends with the first Close
	requestStop context.CancelFunc
	done        chan struct{} // closed when Run has returned

	follow sync.Mutex // held while a state is decided and told: a listener hears of them in their order

	mu      sync.Mutex
	state   State
	started bool
	err     error // of Run
	kill    context.CancelFunc
	workers []*task.Worker
	topics  map[string]kafka.Topic
	admin   kafka.Admin   // while Run runs
	member  *member       // while Run runs
	changed chan struct{} // closed and replaced at every change
}

// Topology is what an App runs; see processor.Topology.
type Topology = processor.Topology

// New makes an application. It reports every problem of the topology and the configuration;
// it touches neither disk nor network.
func New(topology *Topology, cfg Config) (*App, error) {
	if topology == nil {
		return nil, errors.New("streams: the topology is nil")
	}
	if err := errors.Join(cfg.Validate(), topology.Build()); err != nil {
		return nil, err
	}
	cfg.defaults()
	if cfg.Client == nil {
		cfg.Client = franz.Client{}
	}
	a := &App{topology: topology, cfg: cfg, log: cfg.Logger.With("app", cfg.AppID), done: make(chan struct{}), changed: make(chan struct{})}
	a.stopping, a.requestStop = context.WithCancel(context.Background())
	return a, nil
}

// Run runs the application until ctx ends or Close is called, and then commits what was
// processed and closes: nil. It returns an error when the application cannot go on: a record
// that cannot be processed (with its topic, partition and offset), a store that fails, a
// topic that is missing. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	a.mu.Lock()
	if a.started {
		a.mu.Unlock()
		return errors.New("streams: Run was called before, or the application was closed")
	}
	a.started = true
	// hard drops everything at once; it is kept for a Close whose deadline has passed.
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	a.kill = kill
	a.mu.Unlock()
	defer kill()
	defer func() {
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		if err != nil {
			a.setState(Failed)
		} else {
			a.setState(Closed)
		}
		close(a.done)
	}()
	unhook := context.AfterFunc(ctx, a.requestStop)
	defer unhook()
	a.setState(Starting)
	err = a.run(hard)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// errStopped ends a start because the application is being closed.
var errStopped = errors.New("stopped")

// untilStopped gives a context that also ends when the application is being closed, for what
// need not be done then.
func (a *App) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(a.stopping, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// orStopped gives errStopped for an error whose reason is that the application is being closed.
func (a *App) orStopped(ctx context.Context, err error) error {
	if err != nil && a.stopping.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	return err
}

// Close asks Run to end, and waits for it. At ctx's deadline everything that was not committed
// is dropped (nothing is lost: it is processed again at the next start), and the error says
// so. It gives Run's own error otherwise, and may be called again.
func (a *App) Close(ctx context.Context) error {
	a.mu.Lock()
	started, kill := a.started, a.kill
	a.started = true
	a.mu.Unlock()
	a.requestStop()
	if !started {
		a.setState(Closed)
		close(a.done)
		return nil
	}
	select {
	case <-a.done:
		return a.runError()
	default:
	}
	select {
	case <-a.done:
		return a.runError()
	case <-ctx.Done():
	}
	if kill != nil { // else another Close was first, and Run never was
		kill()
	}
	grace := time.NewTimer(10 * time.Second)
	defer grace.Stop()
	select {
	case <-a.done:
	case <-grace.C:
		return fmt.Errorf("close: %w; the workers did not end and are abandoned", ctx.Err())
	}
	return fmt.Errorf("close: %w; the last interval was not committed and will be processed again", ctx.Err())
}

func (a *App) runError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// run is Run between the first state and the last.
func (a *App) run(ctx context.Context) (err error) {
	dir, err := statedir.Open(a.cfg.StateDir, a.cfg.AppID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	admin, err := a.cfg.Client.NewAdmin(a.cfg.Settings)
	if err != nil {
		return fmt.Errorf("open admin client: %w", err)
	}
	defer func() { a.closeClient(admin) }()
	if err := a.prepareTopics(ctx, admin); err != nil {
		return a.explain(err)
	}
	resources, err := statestore.NewResources(statestore.ResourceOptions{BlockCacheBytes: a.cfg.Store.BlockCacheBytes})
	if err != nil {
		return fmt.Errorf("state stores: %w", err)
	}
	defer func() { err = errors.Join(err, resources.Close()) }()
	m, err := a.join(dir)
	if err != nil {
		return a.explain(err)
	}
	defer func() { a.closeClient(m.membership) }()
	a.mu.Lock()
	a.admin, a.member = admin, m
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.admin, a.member = nil, nil
		a.mu.Unlock()
	}()
	r := &rounds{app: a, dir: dir, admin: admin, member: m, resources: resources}
	return a.explain(r.run(ctx))
}

// closeClient ends a part of a client within a bounded time; what cannot be ended is counted
// by the client and said here.
func (a *App) closeClient(c kafka.Closer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		a.log.Warn("close client", "error", err)
	}
}

// notify wakes everybody who waits for a change.
func (a *App) notify() {
	a.mu.Lock()
	close(a.changed)
	a.changed = make(chan struct{})
	a.mu.Unlock()
}

// Status is a snapshot of an [App].
type Status struct {
	State   State
	Workers []task.Status
}

// Status gives the present snapshot, also after the end.
func (a *App) Status() Status {
	a.mu.Lock()
	s := Status{State: a.state}
	workers := a.workers
	a.mu.Unlock()
	for _, w := range workers {
		s.Workers = append(s.Workers, w.Status())
	}
	return s
}

// Changed gives a channel that is closed at the next change of the state, of a restore or of
// what is committed.
func (a *App) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
