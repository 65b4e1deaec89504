package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/offsetcache"
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
	ran     func() // called once when all workers run
	topics  map[string]kafka.Topic
	admin   kafka.Admin        // while Run runs
	member  *member            // while Run runs
	leases  *localstate.Leases // likewise
	// resources of the task stores, while Run runs.
	resources  *statestore.Resources
	offsets    *offsetcache.Cache // nil until the directories were read
	scan       *offsetcache.Scan  // likewise
	cacheBytes int64              // given to SetCacheBytes; 0 = nothing
	// stage is what Run does while there are no workers, for who waits for its end.
	stage string
	// existed: the application ran before, here or elsewhere. Its group is not new.
	existed atomic.Bool
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
	if err := checkGuarantee(topology, cfg.Guarantee); err != nil {
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

// checkGuarantee finds stores that cannot keep what is promised.
func checkGuarantee(topology *Topology, g Guarantee) error {
	if g != ExactlyOnce {
		return nil
	}
	var errs []error
	for _, sub := range topology.Subtopologies() {
		for _, s := range sub.Stores {
			errs = append(errs, s.CheckExactlyOnce())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	return nil
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

// Close asks Run to end, and waits for it. Shortly before ctx's deadline everything that was not
// committed is dropped (nothing is lost: it is processed again at the next start), and the error says
// so. Close returns by the deadline in any case, also while the broker is gone or user code hangs: then
// the error names what had not ended; Run returns when it has. It gives Run's own error otherwise, and
// may be called again.
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
	gentle, hard := closeTimes(ctx)
	if a.ended(ctx, gentle) {
		return a.runError()
	}
	if kill != nil { // else another Close was first, and Run never was
		kill()
	}
	cause := context.Cause(ctx)
	if cause == nil { // it is about to pass
		cause = context.DeadlineExceeded
	}
	if !a.ended(context.WithoutCancel(ctx), hard) {
		return fmt.Errorf("close: %w; abandoned before it had ended: %s; what was not committed will be processed again", cause, a.unfinished())
	}
	return fmt.Errorf("close: %w; the last interval was not committed and will be processed again", cause)
}

// closeTimes says how long Close waits for the gentle end, and then for the hard one. A context that has
// ended, or has no deadline, leaves a moment for the latter.
func closeTimes(ctx context.Context) (gentle, hard time.Duration) {
	at, ok := ctx.Deadline()
	left := time.Until(at)
	if !ok {
		return math.MaxInt64, time.Second
	}
	if left <= 0 {
		return 0, time.Second
	}
	hard = min(left/4, 2*time.Second)
	return left - hard, hard
}

// ended waits for Run's end: for a time, and no longer than ctx lasts.
func (a *App) ended(ctx context.Context, d time.Duration) bool {
	select {
	case <-a.done: // also with a context that has ended
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// at says what Run is doing; "" for what the workers' states tell.
func (a *App) at(stage string) {
	a.mu.Lock()
	a.stage = stage
	a.mu.Unlock()
}

// unfinished names what of Run has not ended.
func (a *App) unfinished() string {
	a.mu.Lock()
	stage := a.stage
	a.mu.Unlock()
	if stage != "" {
		return stage
	}
	var parts []string
	for _, w := range a.Status().Workers {
		if w.State != "closed" {
			parts = append(parts, fmt.Sprintf("worker %s (%s)", w.Name, w.State))
		}
	}
	if len(parts) == 0 {
		return "what watches the topics"
	}
	return strings.Join(parts, ", ")
}

func (a *App) runError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// run is Run between the first state and the last.
func (a *App) run(ctx context.Context) (err error) {
	a.at("opening the state directory")
	dir, err := statedir.Open(a.cfg.StateDir, a.cfg.AppID)
	if err != nil {
		return err
	}
	defer func() {
		a.at("closing the state directory")
		err = errors.Join(err, dir.Close())
	}()
	a.at("preparing the topics")
	admin, err := a.cfg.Client.NewAdmin(a.cfg.Settings)
	if err != nil {
		return fmt.Errorf("open admin client: %w", err)
	}
	defer func() {
		a.at("closing the admin client")
		a.closeClient(ctx, admin)
	}()
	if err := a.prepareTopics(ctx, admin); err != nil {
		return a.explain(err)
	}
	a.at("opening the state stores' resources")
	resources, err := a.openResources()
	if err != nil {
		return fmt.Errorf("state stores: %w", err)
	}
	defer func() {
		a.at("closing the state stores' resources")
		err = errors.Join(err, a.closeResources())
	}()
	if err := resources.CheckFileDescriptors(len(a.taskIDs())); err != nil {
		return fmt.Errorf("state stores: %w", err)
	}
	offsets, err := a.readState(ctx, dir, resources)
	if err != nil {
		return fmt.Errorf("state stores: %w", err)
	}
	stopCleaner := a.startCleaner(ctx, dir, offsets, resources)
	defer func() {
		a.at("stopping the cleaner of task directories")
		stopCleaner()
	}()
	a.at("joining the group")
	m, err := a.join(dir)
	if err != nil {
		return a.explain(err)
	}
	r := &rounds{app: a, dir: dir, admin: admin, member: m, resources: resources, offsets: offsets}
	defer func() {
		a.at("leaving the group")
		a.closeClient(ctx, r.member.membership)
	}()
	r.leases = &localstate.Leases{Dir: dir, Holder: "a worker", Log: a.log}
	a.mu.Lock()
	a.admin, a.member, a.leases = admin, m, r.leases
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.admin, a.member, a.leases = nil, nil, nil
		a.mu.Unlock()
	}()
	return a.explain(r.run(ctx))
}

// closeClient ends a part of a client within a bounded time; what cannot be ended is counted
// by the client and said here. With ctx ended, Close is at its deadline and waits for this.
func (a *App) closeClient(ctx context.Context, c kafka.Closer) {
	patience := 5 * time.Second
	if ctx.Err() != nil {
		patience = 500 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
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
