package task

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// stopper is an admin client during whose look at the ends of topics the worker is stopped.
type stopper struct {
	kafka.Admin
	w *Worker
}

func (s stopper) ListOffsets(context.Context, kafka.OffsetSpec, ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	s.w.Stop()
	return nil, &kafka.Error{Class: kafka.ClassTimeout, Op: "list offsets"}
}

// closable is a scripted producer that can be closed, and during whose Init the worker is stopped.
type closable struct {
	*scripted
	w *Worker
}

func (closable) Close(context.Context) error { return nil }

func (c closable) Init(context.Context) error {
	c.w.Stop()
	return &kafka.Error{Class: kafka.ClassTimeout, Op: "init"}
}

// stopRig is a worker with a task that has processed, and another one that is ready to be started.
type stopRig struct {
	x                 *Worker
	txn               *scripted
	running, starting *world
}

func newStopRig(t *testing.T) *stopRig {
	r := &stopRig{running: newWorld(t), starting: newWorld(t), txn: &scripted{}}
	r.running.apply(id(2, 0))
	me := kafka.Member{Group: "app", ID: "me"}
	cfg := *r.running.task.cfg
	cfg.Started, cfg.Logger, cfg.Member = me, slog.New(slog.DiscardHandler), func() kafka.Member { return me }
	r.x = NewWorker(cfg, nil)
	r.x.cfg.Admin, r.x.txn = stopper{w: r.x}, closable{r.txn, r.x}
	r.running.task.cfg, r.running.task.epoch = &r.x.cfg, 2
	r.x.adopt(r.running.task)
	r.process(t, 200)
	b := &beside{w: r.x.companion(), ready: make(chan *plan, 1), lost: make(chan lostTask, 1), failed: make(chan error, 1), done: make(chan struct{}), cancel: func() {}}
	b.ready <- &plan{task: r.starting.task}
	close(b.done)
	r.x.besides = []*beside{b}
	return r
}

func (r *stopRig) process(t *testing.T, position int64) {
	t.Helper()
	kv, err := r.running.task.store.KeyValue("counts")
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Put([]byte("key"), []byte("value"), 1); err != nil {
		t.Fatal(err)
	}
	for _, q := range r.running.task.queues {
		q.position = position
	}
}

// closes closes the worker, and looks whether the tasks are.
func (r *stopRig) closes(t *testing.T) {
	t.Helper()
	if err := r.x.release(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for name, w := range map[string]*world{"ran": r.running, "started": r.starting} {
		if w.task.store.Sync() == nil {
			t.Errorf("the store of the task that %s is open", name)
		}
	}
}

// A stop in the middle of starting a task that was restored beside others loses nothing of what those have done: it is
// committed, without that task, which is closed as it is.
func TestStopWhileATaskStarts(t *testing.T) {
	r := newStopRig(t)
	if err := r.x.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(r.txn.calls, "commit") || len(r.txn.offsets) != len(r.running.task.queues) {
		t.Errorf("calls %v, offsets %v", r.txn.calls, r.txn.offsets)
	}
	if got := r.running.task.store.CommitID(); got != id(2, 1) {
		t.Errorf("the task that ran is at %v", got)
	}
	r.closes(t)
}

// But where the commit before is in doubt, and the stop ends the search for what became of it, no other follows.
func TestStopWhileACommitIsInDoubt(t *testing.T) {
	for name, more := range map[string]bool{"with records behind it": true, "with none": false} {
		t.Run(name, func(t *testing.T) {
			r := newStopRig(t)
			r.txn.fail, r.txn.with = "commit", &kafka.Error{Class: kafka.ClassInDoubt, Op: "commit"}
			if err := r.x.sealIfMoved(t.Context()); err != nil {
				t.Fatal(err)
			}
			if more {
				r.process(t, 300)
			}
			err := r.x.absorb(t.Context())
			if !errors.Is(err, errStopped) || errors.Is(err, errNotStarted) {
				t.Errorf("%v", err)
			}
			if n := len(r.txn.calls); r.txn.calls[n-1] != "commit" || slices.Contains(r.txn.calls[:n-1], "commit") {
				t.Errorf("calls %v", r.txn.calls)
			}
			r.closes(t)
		})
	}
}
