package streams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// rounds runs the workers again and again: a round lasts from the moment this process holds
// the placement partition to the moment it loses it, or to the end. Until placement plans
// exist, the process that holds the partition runs all tasks, and no other runs any (A2).
type rounds struct {
	app       *App
	dir       *statedir.Dir
	admin     kafka.Admin
	member    *member
	resources *statestore.Resources
	offsets   *offsetcache.Cache
	leases    *localstate.Leases
	// transacted: a transactional id was initialised.
	transacted atomic.Bool
	limits     task.Limits
	failures   *taskFailures // of this round
	fences     fences
}

func (r *rounds) run(ctx context.Context) error {
	a := r.app
	r.limits = a.limits(ctx, r.admin)
	for {
		a.setState(Starting)
		a.at("waiting for a place in the group")
		p, err := r.member.awaitPlace(ctx, a.stopping.Done())
		if kafka.IsClass(err, kafka.ClassInstanceFenced) {
			if err := r.rejoin(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		err = r.round(ctx, p)
		switch {
		case errors.Is(err, task.ErrLost) && ctx.Err() == nil:
			a.log.Warn("lost the place in the group; starting again", "reason", err)
			if err := a.wait(ctx, nil, moment); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// fences are the members in a row that were fenced and replaced, one soon behind the other.
type fences struct {
	n    int
	last time.Time
}

// Who is fenced more often than fencedMost in a row, with less than fencedApart between, has met another process.
const (
	fencedMost  = 4
	fencedApart = time.Minute
)

// rejoin puts a new member in the place of one that was fenced. librdkafka fences itself: when its session has run out, because
// the broker did not answer for so long, it joins as a new member, and what was still under way of the old one is refused with the
// same code, which ends it for good. Another process that has the instance id fences each new member too, until one of the
// two gives up: who was fenced first.
func (r *rounds) rejoin(ctx context.Context, fenced error) error {
	a := r.app
	if a.stopping.Err() != nil {
		return errStopped // a new member would take the place of a successor
	}
	if time.Since(r.fences.last) > max(fencedApart, 3*a.cfg.SessionTimeout) {
		r.fences.n = 0
	}
	if r.fences.n == fencedMost {
		return fenced
	}
	r.fences.n++
	r.fences.last = time.Now()
	a.log.Warn("fenced in the group; joining again: if another process has this instance id, one of the two ends soon", "reason", fenced)
	a.closeClient(ctx, r.member.membership)
	m, err := a.join(r.dir)
	if err != nil {
		return err
	}
	r.member = m
	a.mu.Lock()
	a.member = m
	a.mu.Unlock()
	return nil
}

// round runs all tasks under one member id, for as long as it keeps the place.
func (r *rounds) round(ctx context.Context, p *place) error {
	a := r.app
	a.at("fencing the transactional ids of earlier runs")
	if err := r.fence(ctx); err != nil {
		return err
	}
	choice, err := r.choice()
	if err != nil {
		return err
	}
	r.failures = newTaskFailures(len(a.taskIDs()))
	workers := r.newWorkers(p, choice)
	a.mu.Lock()
	a.workers, a.ran, a.stage = workers, r.acted, ""
	a.mu.Unlock()
	a.setState(Restoring)
	return r.supervise(ctx, workers)
}

// fence initialises every transactional id that this process ever used and does not use now:
// whatever an earlier life left open ends here (A3). The workers initialise their own.
func (r *rounds) fence(ctx context.Context) error {
	current := map[string]bool{}
	for i := range r.app.cfg.Workers {
		id := r.transactionalID(i)
		current[id] = true
		if err := r.dir.RecordTransactionalID(id); err != nil {
			return err
		}
	}
	for _, id := range r.dir.TransactionalIDs() {
		if current[id] {
			continue
		}
		if err := r.fenceID(ctx, id); err != nil {
			return fmt.Errorf("fence transactional id %s of an earlier run: %w", id, err)
		}
	}
	return nil
}

// fenceID tries until it has worked: a broker that is away for a while is waited for.
func (r *rounds) fenceID(ctx context.Context, id string) error {
	for {
		txn, err := r.newTransactional(id)
		if err != nil {
			return err
		}
		ictx, unhook := r.app.untilStopped(ctx)
		ictx, cancel := context.WithTimeout(ictx, r.app.cfg.TransactionTimeout+r.app.cfg.StartTimeout)
		err = txn.Init(ictx)
		cancel()
		unhook()
		r.app.closeClient(ctx, txn)
		if err == nil {
			return nil
		}
		if a := task.Decide(kafka.ClassOf(err)); a != task.Retry && a != task.Reload {
			return err
		}
		select {
		case <-r.app.stopping.Done():
			return errors.Join(errStopped, err)
		case <-time.After(moment):
			r.app.log.Warn("fence an old transactional id: trying again", "id", id, "error", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// transactionalID of worker i: stable, so that a restart fences its former life.
func (r *rounds) transactionalID(i int) string {
	return fmt.Sprintf("%s-%s-%d", r.app.cfg.AppID, r.dir.ProcessID(), i)
}

func (r *rounds) newTransactional(id string) (kafka.Transactional, error) {
	txn, err := r.app.cfg.Client.NewTransactional(r.app.cfg.Settings, kafka.TransactionalConfig{ID: id, Timeout: r.app.cfg.TransactionTimeout})
	if err != nil {
		return nil, fmt.Errorf("open transactional producer %s: %w", id, err)
	}
	return &transactional{Transactional: txn, id: id, worked: &r.transacted}, nil
}

// newWorkers makes the workers and deals the tasks out to them.
func (r *rounds) newWorkers(p *place, choice task.Conflict) []*task.Worker {
	a := r.app
	ids := a.taskIDs()
	var workers []*task.Worker
	for i := range a.cfg.Workers {
		var mine []processor.TaskID
		for j := i; j < len(ids); j += a.cfg.Workers {
			mine = append(mine, ids[j])
		}
		workers = append(workers, task.NewWorker(r.workerConfig(i, p, choice), mine))
	}
	return workers
}

// choice gives the operator's for conflicts between stores and offsets. One that was recorded for this
// start goes before the configuration's.
func (r *rounds) choice() (task.Conflict, error) {
	text, err := r.dir.Choice()
	if text == "" || err != nil {
		return r.app.cfg.OnConflict, err
	}
	c, err := task.ParseConflict(text)
	if err != nil {
		return c, fmt.Errorf("the choice recorded in %s: %w", r.dir.Path(), err)
	}
	r.app.log.Warn("conflicts between stores and offsets are ended as an operator chose", "choice", c.String())
	return c, nil
}

// acted forgets a choice that was recorded for this start, once all tasks run. While one has failed alone it stays
// for the next start: it may be the one that it was meant for.
func (r *rounds) acted() {
	r.app.existed.Store(true)
	if r.failures.err() != nil {
		if text, err := r.dir.Choice(); text != "" && err == nil {
			r.app.log.Warn("a task has failed: the operator's choice stays recorded for the next start", "choice", text)
		}
		return
	}
	if err := r.dir.ClearChoice(); err != nil {
		r.app.log.Warn("the operator's choice stays recorded for the next start", "error", err)
	}
}

func (r *rounds) clients(i int) task.Clients {
	c, s := r.app.cfg.Client, r.app.cfg.Settings
	return task.Clients{
		Admin:         r.admin,
		Consumer:      func() (kafka.Consumer, error) { return c.NewConsumer(s, kafka.ConsumerConfig{}) },
		Outputs:       func() (kafka.Producer, error) { return c.NewProducer(s, kafka.ProducerConfig{}) },
		Transactional: func() (kafka.Transactional, error) { return r.newTransactional(r.transactionalID(i)) },
	}
}

func (r *rounds) workerConfig(i int, p *place, choice task.Conflict) task.Config {
	a := r.app
	cfg := task.Config{Name: fmt.Sprint(i), AppID: a.cfg.AppID, Topology: a.topology, Guarantee: a.cfg.Guarantee, Limits: r.limits,
		Start: task.StartPosition{Spec: a.cfg.Start.spec}, Existing: a.existed.Load(), OnConflict: choice, WhileRunning: a.cfg.OnConflict, OnFailure: a.cfg.OnTaskFailure, Failed: r.taskFailed, Topics: a.topics, OpenStore: r.openStore, StoreClosed: r.storeClosed, Keep: r.keep,
		Owner: r.dir.ProcessID(), Offsets: r.offsets, Started: p.started, Member: p.current,
		Caching: processor.Caching{All: a.cfg.Store.Caching, MaxEntries: a.cfg.Store.CachingMaxEntries},
		Now:     a.cfg.Now, Logger: a.log, Changed: a.workerChanged, RestoreListener: a.cfg.RestoreListener, Clients: r.clients(i)}
	if x := a.cfg.TimestampExtractor; x != nil {
		cfg.ExtractTimestamp = func(rec *kafka.Record, partitionTime time.Time) (int64, error) {
			t, err := x(rec, partitionTime)
			return t.UnixMilli(), err
		}
	}
	return cfg
}

func (r *rounds) openDir(id processor.TaskID) (*statestore.TaskStore, error) {
	c := r.app.cfg.Store
	return statestore.Open(r.dir.TaskDir(id.String()), statestore.Options{Resources: r.resources, SyncInterval: c.SyncInterval, SyncEveryCommit: c.SyncEveryCommit, Logger: r.app.log})
}

// supervise runs the workers until all have ended. The first failure, or a stop, ends them all:
// those that are well commit what they have processed.
func (r *rounds) supervise(ctx context.Context, workers []*task.Worker) error {
	a := r.app
	errs := make(chan error, len(workers))
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			err := fmt.Errorf("worker %s: user code has ended its goroutine (runtime.Goexit, as testing.T.FailNow does)", w.Status().Name)
			defer func() { errs <- err }()
			err = w.Run(ctx)
		})
	}
	var once sync.Once
	stopAll := func() {
		once.Do(func() {
			for _, w := range workers {
				w.Stop()
			}
		})
	}
	wctx, unwatch := context.WithCancel(ctx)
	topics := make(chan error, 1)
	all.Go(func() {
		if err := a.watchTopics(wctx, r.admin); err != nil {
			topics <- err
		}
	})
	var failed, lost error
	allFailed := r.failures.all
	for left := len(workers); left > 0; {
		var err error
		select {
		case <-a.stopping.Done():
			a.setState(Closing)
			stopAll()
			err = <-errs
			left--
		case err = <-errs:
			stopAll()
			left--
		case err = <-topics:
			stopAll()
		case <-allFailed:
			stopAll()
			allFailed = nil
		}
		if errors.Is(err, task.ErrLost) {
			lost = errors.Join(lost, err)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	unwatch()
	all.Wait()
	return r.outcome(failed, lost)
}

// outcome is what a round ends with. A failure goes before a lost place: a new round would only meet it again.
func (r *rounds) outcome(failed, lost error) error {
	switch {
	case failed != nil:
		return errors.Join(failed, r.failures.err())
	case lost != nil:
		return lost // the next round tries the tasks that failed again
	}
	return r.failures.err()
}

// workerChanged follows the workers' states: the app runs when all of them do.
func (a *App) workerChanged() {
	// One at a time: a state that was computed earlier must not be set later.
	a.follow.Lock()
	defer a.follow.Unlock()
	a.mu.Lock()
	workers, state := a.workers, a.state
	a.mu.Unlock()
	if to, ok := a.reached(workers); ok && (state == Restoring || state == Running) {
		a.enter(to)
		if to == Running {
			a.mu.Lock()
			ran := a.ran
			a.ran = nil
			a.mu.Unlock()
			if ran != nil {
				ran()
			}
		}
	}
	a.notify()
}

// reached gives the state that the workers' states make; ok is false when they tell none.
func (a *App) reached(workers []*task.Worker) (to State, ok bool) {
	to = Running
	for _, w := range workers {
		switch w.State() {
		case "restoring", "opening", "": // "": it has not begun
			to, ok = Restoring, true
		case "closed": // it has failed, perhaps without ever having run
			if a.cfg.OnTaskFailure == StopApp {
				return 0, false
			}
		default:
			ok = true
		}
	}
	return to, ok
}
