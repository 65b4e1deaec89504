package task

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// remaining is how many offsets of changelogs are to be restored.
func (p *plan) remaining() (n int64) {
	for _, s := range p.stores {
		n += s.status.Remaining()
	}
	return n
}

// beside is the take-over of tasks beside their worker's loop, in a goroutine that the worker
// owns: steps 2 to 4, each task as soon as it is ready, and the writing of changelogs that have lost their stores, whose
// pieces the loop writes. The tasks, and everything under them, are the
// goroutine's until they come out of ready or lost; those that did not are the worker's again after stop.
type beside struct {
	w      *Worker // of the goroutine's own: a consumer and the tasks, no producer; the status is shared
	ready  chan *plan
	pieces chan *seedPiece // for the loop to write, one at a time
	seeds  atomic.Bool     // changelogs are being written
	lost   chan lostTask   // tasks that have failed alone
	failed chan error      // has room for one: nothing more comes out
	done   chan struct{}
	cancel context.CancelFunc
}

// lostTask is a task that failed before it ran. It is to be closed.
type lostTask struct {
	task *Task
	err  error
}

// restoreBeside begins to restore tasks beside the loop. They must not be among w.tasks.
func (w *Worker) restoreBeside(ctx context.Context, plans []*plan) {
	var tasks []*Task
	for _, p := range plans {
		tasks = append(tasks, p.task)
	}
	w.bringBeside(ctx, tasks, plans)
}

// bringBeside is restoreBeside; without plans it makes them.
func (w *Worker) bringBeside(ctx context.Context, tasks []*Task, plans []*plan) {
	if len(tasks) == 0 {
		return
	}
	b := &beside{w: w.companion(), ready: make(chan *plan, len(tasks)), pieces: make(chan *seedPiece), lost: make(chan lostTask, len(tasks)), failed: make(chan error, 1), done: make(chan struct{})}
	b.w.tasks = tasks
	// The goroutine outlives the take-over; the end of the loop, whatever its cause, ends it.
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.besides = append(w.besides, b)
	w.log.Info("restore tasks beside the loop", "tasks", len(tasks))
	unhook := context.AfterFunc(w.stopped, b.w.stop)
	go func() { // ended by stop
		defer close(b.done)
		defer unhook()
		if err := b.run(ctx, plans); err != nil {
			b.failed <- err
		}
	}()
}

// companion makes a worker for take-overs that run beside w: it shows in w's status, and has no
// producer of its own.
func (w *Worker) companion() *Worker {
	c := NewWorker(w.cfg, nil)
	c.status = w.status
	return c
}

// run brings the tasks to where they can be started, for as long as its errors may go away.
func (b *beside) run(ctx context.Context, plans []*plan) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := b.w.untilStopped(ctx, func(ctx context.Context) error { return b.try(ctx, plans) })
		stopped := ctx.Err() != nil || errors.Is(err, errStopped) // not the restore's failure
		if err == nil || stopped {
			return nil
		}
		plans = nil // they are to be made anew
		if b.loseAlone(err) {
			if len(b.w.tasks) == 0 {
				return nil
			}
			continue
		}
		if a := disposition(err); a != Retry && a != Reload {
			return err
		}
		b.w.log.Warn("restore tasks: trying again", "reason", err)
		b.w.idle(ctx, wait)
	}
}

// loseAlone gives up the one task that an error is about, if that is the choice: the others go on from where they
// are. A store that was found damaged is not lost: the worker opens it anew.
func (b *beside) loseAlone(err error) bool {
	var failed *Error
	if b.w.cfg.OnFailure != KeepOthers || disposition(err) != FailTask || !errors.As(err, &failed) {
		return false
	}
	t := b.w.taskNamed(failed.Task)
	if t == nil || damaged(t, err) {
		return false
	}
	b.w.tasks = without(b.w.tasks, t)
	b.lost <- lostTask{t, err} // there is room for all
	return true
}

// try brings the tasks that are left.
func (b *beside) try(ctx context.Context, plans []*plan) error {
	unseeded, err := b.bring(ctx, plans)
	if err != nil {
		return err
	}
	return b.seed(ctx, unseeded)
}

// bring opens a consumer and restores tasks. Those whose changelogs are to be written are held back, and given: the others do not
// wait for that.
func (b *beside) bring(ctx context.Context, plans []*plan) (unseeded []*plan, err error) {
	w := b.w
	if w.consumer, err = w.cfg.Consumer(); err != nil {
		return nil, fmt.Errorf("open consumer: %w", err)
	}
	defer func() {
		w.closeClients(ctx, w.consumer)
		w.consumer = nil
	}()
	if plans == nil {
		if plans, err = w.survey(ctx, w.tasks); err != nil {
			return nil, err
		}
	}
	err = w.bring(ctx, plans, func(ready []*plan) error {
		if err := w.resolvePositions(ctx, ready); err != nil {
			return err
		}
		for _, p := range ready {
			if p.unseeded() {
				unseeded = append(unseeded, p)
			} else {
				b.hand(p)
			}
		}
		return nil
	})
	return unseeded, err
}

func (b *beside) hand(p *plan) {
	b.w.tasks = without(b.w.tasks, p.task)
	b.ready <- p // there is room for all
}

// stop ends the goroutine, at the next batch, and gives the tasks that did not come out.
func (b *beside) stop() []*Task {
	b.cancel()
	b.w.stop()
	<-b.done
	left := b.w.tasks
	for {
		select {
		case p := <-b.ready:
			left = append(left, p.task)
		default:
			return left
		}
	}
}

// stopBesides ends all take-overs beside the loop; their tasks are the worker's.
func (w *Worker) stopBesides() {
	for _, b := range w.besides {
		w.adopt(b.stop()...)
		w.giveUpLost(b)
	}
	w.besides = nil
}

// giveUpLost closes the tasks that have failed beside the loop, and makes it known.
func (w *Worker) giveUpLost(b *beside) {
	for range len(b.lost) {
		x := <-b.lost
		w.giveUpTask(x.task, x.err)
	}
}

// adopt makes tasks the worker's.
func (w *Worker) adopt(tasks ...*Task) {
	for _, t := range tasks {
		w.tasks = append(w.tasks, t)
		for _, q := range t.queues {
			w.queues[q.tp] = q
		}
	}
}

// absorb starts the tasks that have become ready beside the loop: the end of their take-over, as
// that of [Worker.takeOver]. Since their group offsets were read again nobody else can have committed for them: the
// transactional ids of before are fenced, and the group knows only this member.
func (w *Worker) absorb(ctx context.Context) error {
	if len(w.besides) == 0 {
		return nil
	}
	plans, err := w.readyPlans()
	if err != nil {
		for _, p := range plans {
			w.adopt(p.task)
		}
		return err
	}
	if len(plans) > 0 {
		if err := w.start(ctx, plans); err != nil {
			return err
		}
	}
	w.tellState()
	return nil
}

// errNotStarted says that a stop met the start of tasks. The last commit has ended well, and the next can be made.
var errNotStarted = fmt.Errorf("tasks are not started: %w", errStopped)

// start ends the take-over of tasks whose stores are restored, beside those that run. After an error
// they are taken over again with the others; after a stop they are not the worker's, whose last commit is that of
// the tasks that ran.
func (w *Worker) start(ctx context.Context, plans []*plan) error {
	if err := w.collect(ctx, true); err != nil { // it has the transactional producer
		for _, p := range plans {
			w.adopt(p.task)
		}
		return err
	}
	tasks := make([]*Task, 0, len(plans))
	for _, p := range plans {
		tasks = append(tasks, p.task)
	}
	w.adopt(tasks...)
	err := w.learnEnds(ctx, tasks)
	if err == nil {
		err = w.commitEpochs(ctx, plans)
	}
	if err == nil {
		err = w.startTasks(ctx, plans)
	}
	if errors.Is(err, errStopped) {
		for _, t := range tasks {
			w.remove(t)
		}
		w.unstarted = append(w.unstarted, tasks...)
		return errNotStarted
	}
	return err
}

// readyPlans takes what is ready now, and lets go of the goroutines that are through.
func (w *Worker) readyPlans() (plans []*plan, err error) {
	open := w.besides[:0:0]
	for _, b := range w.besides {
		through := false
		select {
		case <-b.done:
			through = true
		default:
		}
		for range len(b.ready) {
			plans = append(plans, <-b.ready)
		}
		w.giveUpLost(b)
		if !through || len(b.w.tasks) > 0 { // with tasks left it was stopped, or has failed: the close sees to them
			open = append(open, b)
		} else {
			b.cancel()
		}
		select {
		case err = <-b.failed:
		default:
		}
	}
	w.besides = open
	return plans, err
}

func without(tasks []*Task, t *Task) []*Task {
	var rest []*Task
	for _, x := range tasks {
		if x != t {
			rest = append(rest, x)
		}
	}
	return rest
}
