package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// Worker owns tasks and runs them in one goroutine: poll, process, commit.
type Worker struct {
	cfg    Config
	ids    []processor.TaskID
	log    *slog.Logger
	now    func() time.Time
	tasks  []*Task
	queues map[kafka.TopicPartition]*queue
	poll   kafka.Poll

	consumer kafka.Consumer
	txn      kafka.Transactional
	outputs  kafka.Producer // nil under exactly-once

	running   *interval
	box       *outbox // of the running interval: records that wait for the transaction
	direct    *outbox // of the running interval: at-least-once outputs, sent after each turn
	sealed    *interval
	results   chan commitResult
	commits   int  // that succeeded
	commitNow bool // a processor asked for it
	sticky    int32
	sinks     map[string]sinkTopic
	sinkOf    string    // topic of the output before
	sink      sinkTopic // of sinkOf
	purging   purging

	stopped context.Context // ends with Stop
	stop    context.CancelFunc
	besides []*beside // take-overs beside the loop
	// seedTurn: a commit went through since the last piece of a seeding. After one that has failed none is written before
	// seedAfter, seedPause later.
	seedTurn  bool
	seedAfter time.Time
	seedPause time.Duration
	// unstarted were taken over when the worker was stopped: they are only to be closed.
	unstarted []*Task
	// emptyWaits are those of askagain.go; a test shortens them.
	emptyWaits []time.Duration
	failures
	status *statusBoard
}

type sinkTopic struct {
	name          string
	partitions    int32
	transactional bool
}

// NewWorker makes a worker for tasks. It fills the zero fields of cfg.Limits.
func NewWorker(cfg Config, ids []processor.TaskID) *Worker {
	cfg.Limits.Defaults()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	w := &Worker{cfg: cfg, ids: ids, emptyWaits: emptyWaits, log: cfg.Logger.With("worker", cfg.Name), now: cfg.Now, queues: map[kafka.TopicPartition]*queue{},
		box: newOutbox(), direct: newOutbox(), running: newInterval(), results: make(chan commitResult, 1), sinks: map[string]sinkTopic{}, status: &statusBoard{changed: cfg.Changed}}
	w.stopped, w.stop = context.WithCancel(context.Background())
	for _, sub := range cfg.Topology.Subtopologies() {
		for _, name := range sub.Sinks {
			_, internal := cfg.Topology.Internal(name)
			t := cfg.Topics[RealTopic(cfg.Topology, cfg.AppID, name)]
			w.sinks[name] = sinkTopic{t.Name, t.Partitions, internal || cfg.Guarantee == ExactlyOnce}
		}
	}
	return w
}

// Stop asks the worker to commit what it has processed and to close its tasks. It returns at
// once; Run returns when it is done.
func (w *Worker) Stop() { w.stop() }

func (w *Worker) stopping() bool { return w.stopped.Err() != nil }

// untilStopped runs a step that a stop may cut short, whatever it waits for: nothing was processed
// yet, and the next take-over finds out how far it came.
func (w *Worker) untilStopped(ctx context.Context, step func(context.Context) error) error {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.stopped, cancel)()
	err := step(sctx)
	if err == nil || !w.stopping() || ctx.Err() != nil || errors.Is(err, errStopped) {
		return err
	}
	if a := disposition(err); errors.Is(err, context.Canceled) || a == Retry || a == Reload {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	return err
}

// Run runs the worker until Stop, or until it fails: nil after a clean stop; ErrLost when
// the group gave the place away; an [*Error] when one task failed; anything else when the
// worker as a whole did. When ctx ends everything is dropped at once. In every case the
// tasks and the clients are closed when it returns.
func (w *Worker) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, w.close(ctx, err)) }()
	err = w.run(ctx)
	if errors.Is(err, errStopped) {
		// Only what was not committed is dropped, and will be processed again.
		w.log.Warn("stopped before the last interval was committed", "reason", err)
		return nil
	}
	return err
}

func (w *Worker) run(ctx context.Context) error {
	w.status.state("opening")
	var err error
	if w.txn, err = w.cfg.Transactional(); err != nil {
		return fmt.Errorf("open transactional producer: %w", err)
	}
	if err := w.openClients(); err != nil {
		return err
	}
	if err := w.untilStopped(ctx, w.initialise); err != nil {
		return err
	}
	if err := w.openTasks(ctx); err != nil {
		return err
	}
	for failures := 0; ; failures++ {
		before := w.commits
		err := w.untilStopped(ctx, w.takeOver)
		if err == nil {
			err = w.loop(ctx)
		}
		if w.commits > before {
			failures = 0
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errStopped) {
			return err
		}
		switch disposition(err) {
		case Retry, Reload:
		case Rejoin:
			if !errors.Is(err, ErrLost) { // the group refused us before we heard that it had dropped us
				err = fmt.Errorf("%w: %w", ErrLost, err)
			}
			return err
		default:
			if left := w.failAlone(err); left != nil {
				return left
			}
		}
		w.log.Warn("reload tasks", "reason", err)
		w.idle(ctx, min(50*time.Millisecond<<min(failures, 10), 5*time.Second)-50*time.Millisecond)
		for {
			rerr := w.reload(ctx)
			if rerr == nil {
				break
			}
			if left := w.failAlone(rerr); left != nil {
				return left
			}
		}
		if w.stopping() {
			return fmt.Errorf("%w after: %w", errStopped, err)
		}
	}
}

// initialise fences every former user of the transactional id, and ends its transaction.
func (w *Worker) initialise(ctx context.Context) error {
	return w.retry(ctx, "initialise transactional id", w.txn.Init)
}

// disposition is Decide for errors that may also come from a task or a lost membership.
func disposition(err error) Action {
	var failed *Error
	var client *kafka.Error
	switch {
	case errors.Is(err, ErrLost):
		return Rejoin
	case errors.As(err, &client):
		return Decide(client.Class)
	case errors.As(err, &failed):
		return FailTask
	}
	return FailApp // not a client's, not a task's: nothing that trying again would heal
}

// openTasks opens the stores of several tasks at a time: each waits for the disk. Those that
// were opened are the worker's also when another failed.
func (w *Worker) openTasks(ctx context.Context) error {
	tasks, errs := make([]*Task, len(w.ids)), make([]error, len(w.ids))
	var opening errgroup.Group
	opening.SetLimit(storesAtATime())
	for i, id := range w.ids {
		opening.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if tasks[i], err = newTask(&w.cfg, w.cfg.Topology.Subtopologies()[id.Subtopology], id); err != nil {
				errs[i] = &Error{Task: id, Err: err}
			}
			return nil
		})
	}
	err := opening.Wait()
	for _, t := range tasks {
		if t != nil {
			w.adopt(t)
		}
	}
	for i, oerr := range errs {
		if oerr == nil {
			continue
		}
		if w.cfg.OnFailure != KeepOthers {
			return oerr
		}
		w.giveUp(w.ids[i], w.cfg.sources(w.ids[i]), oerr)
	}
	return err
}

// storesAtATime is how many stores a worker opens or closes at a time.
func storesAtATime() int { return 4 * runtime.GOMAXPROCS(0) }

// reload drops what is not committed and makes the producer usable again. The stores stay
// open; the take-over order comes next.
func (w *Worker) reload(ctx context.Context) error {
	w.await()
	w.box.drop()
	w.direct.drop()
	w.running = newInterval()
	w.sealed = nil
	w.closeClients(ctx, w.consumer, w.outputs)
	if err := w.openClients(); err != nil {
		return err
	}
	var failed error
	for _, t := range w.tasks {
		if err := t.drop(); err != nil && failed == nil {
			failed = &Error{Task: t.id, Err: err}
		}
	}
	if failed != nil {
		return failed
	}
	return w.untilStopped(ctx, w.initialise)
}

// openClients opens what a reload replaces. The transactional producer is not among it: its
// Init makes it usable again.
func (w *Worker) openClients() (err error) {
	if w.consumer, err = w.cfg.Consumer(); err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	if w.cfg.Guarantee == AtLeastOnce {
		if w.outputs, err = w.cfg.Outputs(); err != nil {
			return fmt.Errorf("open producer: %w", err)
		}
	}
	return nil
}

// closeClients ends clients within a bounded time; what they held back is given up. With ctx ended
// everything is to end at once.
func (w *Worker) closeClients(ctx context.Context, clients ...kafka.Closer) {
	patience := 5 * time.Second
	if ctx.Err() != nil {
		patience = time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range clients {
		if c == nil {
			continue
		}
		all.Go(func() {
			if err := c.Close(ctx); err != nil {
				w.log.Warn("close client", "error", err)
			}
		})
	}
	all.Wait()
}

// await waits for the commit under way, if any, and throws its result away.
func (w *Worker) await() {
	if w.sealed == nil {
		return
	}
	res := <-w.results
	w.sealed = nil
	if p := res.interval.seed; p != nil {
		w.pieceEnded(p, res.err)
	}
}

// retry repeats f while its error may go away by itself. It reports each failure and gives
// up when the worker is stopped.
func (w *Worker) retry(ctx context.Context, what string, f func(context.Context) error) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		step, cancel := context.WithTimeout(ctx, w.cfg.Limits.RetryTimeout)
		err := f(step)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if a := disposition(err); a != Retry && a != Reload {
			return fmt.Errorf("%s: %w", what, err)
		}
		if w.stopping() {
			return fmt.Errorf("%s: %w: %w", what, errStopped, err)
		}
		w.log.Warn(what+": trying again", "error", err)
		w.idle(ctx, wait)
	}
}

// idle waits before something is tried again; a stop or the end of ctx ends it.
func (w *Worker) idle(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stopped.Done():
	case <-ctx.Done():
	}
}

// close ends tasks and clients. After a failure there is nothing to commit; whatever the
// cause, the store of each task is closed cleanly: it holds only committed data (T1).
func (w *Worker) close(ctx context.Context, cause error) error {
	defer w.status.closed()
	return w.release(ctx, cause)
}

func (w *Worker) release(ctx context.Context, cause error) error {
	w.await()
	w.stopBesides()
	w.adopt(w.unstarted...)
	w.unstarted = nil
	w.stopPurge()
	errs := make([]error, len(w.tasks))
	for i, t := range w.tasks { // user code runs here, on this goroutine
		errs[i] = t.drop()
	}
	var closing errgroup.Group
	closing.SetLimit(storesAtATime())
	for i, t := range w.tasks {
		closing.Go(func() error {
			errs[i] = errors.Join(errs[i], t.closeStore())
			return nil
		})
	}
	_ = closing.Wait() // the errors are in errs
	if cause != nil {
		errs = nil
	}
	for i, err := range errs {
		if err != nil && w.cfg.OnFailure == KeepOthers { // found out only now, of a task that had nothing to do; the others are well
			w.giveUp(w.tasks[i].id, w.tasks[i].partitions(), &Error{Task: w.tasks[i].id, Err: err})
			errs[i] = nil
		}
	}
	w.closeClients(ctx, w.consumer, w.txn, w.outputs)
	return errors.Join(errs...)
}
