package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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

	stop   chan struct{}
	status statusBoard
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
	w := &Worker{cfg: cfg, ids: ids, log: cfg.Logger.With("worker", cfg.Name), now: cfg.Now, queues: map[kafka.TopicPartition]*queue{},
		box: newOutbox(), direct: newOutbox(), running: newInterval(), results: make(chan commitResult, 1), stop: make(chan struct{}), sinks: map[string]sinkTopic{}}
	for _, sub := range cfg.Topology.Subtopologies() {
		for _, name := range sub.Sinks {
			_, internal := cfg.Topology.Internal(name)
			t := cfg.Topics[RealTopic(cfg.Topology, cfg.AppID, name)]
			w.sinks[name] = sinkTopic{t.Name, t.Partitions, internal || cfg.Guarantee == ExactlyOnce}
		}
	}
	w.status.changed = cfg.Changed
	return w
}

// Stop asks the worker to commit what it has processed and to close its tasks. It returns at
// once; Run returns when it is done. It is called once.
func (w *Worker) Stop() { close(w.stop) }

func (w *Worker) stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
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
	if err := w.initialise(ctx); err != nil {
		return err
	}
	if err := w.openTasks(ctx); err != nil {
		return err
	}
	for failures := 0; ; failures++ {
		before := w.commits
		err := w.takeOver(ctx)
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
			return err
		}
		w.log.Warn("reload tasks", "reason", err)
		w.idle(ctx, min(50*time.Millisecond<<min(failures, 10), 5*time.Second)-50*time.Millisecond)
		if err := w.reload(ctx); err != nil {
			return err
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

func (w *Worker) openTasks(ctx context.Context) error {
	for _, id := range w.ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t, err := newTask(&w.cfg, w.cfg.Topology.Subtopologies()[id.Subtopology], id)
		if err != nil {
			return &Error{Task: id, Err: err}
		}
		w.tasks = append(w.tasks, t)
		for _, q := range t.queues {
			w.queues[q.tp] = q
		}
	}
	return nil
}

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
	for _, t := range w.tasks {
		if err := t.drop(); err != nil {
			return &Error{Task: t.id, Err: err}
		}
	}
	return w.initialise(ctx)
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

// closeClients ends clients within a bounded time; what they held back is given up.
func (w *Worker) closeClients(ctx context.Context, clients ...kafka.Closer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, c := range clients {
		if c == nil {
			continue
		}
		if err := c.Close(ctx); err != nil {
			w.log.Warn("close client", "error", err)
		}
	}
}

// await waits for the commit under way, if any, and throws its result away.
func (w *Worker) await() {
	if w.sealed != nil {
		<-w.results
		w.sealed = nil
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
	case <-w.stop:
	case <-ctx.Done():
	}
}

// close ends tasks and clients. After a failure there is nothing to commit; whatever the
// cause, the store of each task is closed cleanly: it holds only committed data (T1).
func (w *Worker) close(ctx context.Context, cause error) error {
	w.await()
	var errs []error
	for _, t := range w.tasks {
		if err := t.close(); err != nil && cause == nil {
			errs = append(errs, err)
		}
	}
	w.status.closed()
	w.closeClients(ctx, w.consumer, w.txn, w.outputs)
	return errors.Join(errs...)
}
