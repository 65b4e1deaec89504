package task

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

func (w *world) worker(choice OnFailure) *Worker {
	cfg := *w.task.cfg
	cfg.Logger, cfg.OnFailure = slog.New(slog.DiscardHandler), choice
	x := NewWorker(cfg, nil)
	x.adopt(w.task)
	return x
}

// A damaged store is opened anew, but not for ever: a bad disk must not keep a task restoring.
func TestReopenIsBounded(t *testing.T) {
	w := newWorld(t)
	x := w.worker(StopApp)
	t.Cleanup(func() {
		for _, task := range x.tasks {
			_ = task.close()
		}
	})
	now := time.Unix(1000, 0)
	x.now = func() time.Time { return now }
	damage := func() error {
		if err := x.tasks[0].store.Close(); err != nil { // a store that is of no use any more
			t.Fatal(err)
		}
		return x.failAlone(&Error{Err: fmt.Errorf("read: %w", statestore.ErrCorrupt)})
	}
	for i := range maxReopened {
		if err := damage(); err != nil || len(x.tasks) != 1 || x.tasks[0].store.Err() != nil {
			t.Fatalf("damage %d: %v, %d tasks", i+1, err, len(x.tasks))
		}
	}
	if err := damage(); err == nil || !strings.Contains(err.Error(), "3 times within an hour") || !errors.Is(err, statestore.ErrCorrupt) {
		t.Errorf("one too many: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if err := damage(); err != nil {
		t.Errorf("hours later: %v", err)
	}
}

// What a failure is about, and what follows.
func TestFailAlone(t *testing.T) {
	users := &Error{Err: errors.New("of the user")}
	tooLarge := func(on string) error { return &kafka.Error{Class: kafka.ClassTooLarge, Op: "produce", On: on} }
	for name, c := range map[string]struct {
		err          error
		others       bool // the worker has another task
		choice       OnFailure
		goes, closed bool
	}{
		"stop":                        {users, true, StopApp, false, false},
		"keep":                        {users, true, KeepOthers, true, true},
		"the only task":               {tooLarge("out-0"), false, KeepOthers, true, true},
		"a changelog record":          {tooLarge("app-counts-changelog-0"), true, KeepOthers, true, true},
		"an output of one of several": {tooLarge("out-0"), true, KeepOthers, true, false},
		"the same, stop":              {tooLarge("out-0"), true, StopApp, false, false},
		"not one task's":              {errors.New("nobody's"), true, KeepOthers, false, false},
		"not allowed":                 {&kafka.Error{Class: kafka.ClassUnauthorized}, true, KeepOthers, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.worker(c.choice)
			told := 0
			x.cfg.Failed = func(id processor.TaskID, err error) {
				told++
				if id != w.task.id || !errors.Is(err, c.err) {
					t.Errorf("told of %v: %v", id, err)
				}
			}
			if c.others {
				other := *w.task
				other.id.Partition, other.queues = 1, nil
				x.adopt(&other)
			}
			before := len(x.tasks)
			if err := x.failAlone(c.err); (err == nil) != c.goes {
				t.Errorf("error %v; want that it goes on: %v", err, c.goes)
			}
			if closed := len(x.tasks) < before; closed != c.closed || closed != (told == 1) || closed != (w.task.store.Err() != nil) {
				t.Errorf("%d tasks of %d are left, told %d times, store %v", len(x.tasks), before, told, w.task.store.Err())
			}
			if alone := x.alone != nil; alone != (c.goes && !c.closed) {
				t.Errorf("tasks commit alone: %v", alone)
			}
		})
	}
}

// A store that had failed while nobody used it is found out when it is closed. Where tasks fail alone that does not
// end the others' worker with an error, which would end the application where it only loses its place.
func TestStoreThatHadFailedAtAStop(t *testing.T) {
	for _, choice := range []OnFailure{StopApp, KeepOthers} {
		t.Run(choice.String(), func(t *testing.T) {
			w := newWorld(t)
			w.left(true)
			x := w.worker(choice)
			var told error
			x.cfg.Failed = func(_ processor.TaskID, err error) { told = err }
			kv, err := w.task.store.KeyValue("counts")
			if err != nil {
				t.Fatal(err)
			}
			next, stop := iter.Pull2(kv.All()) // a store with an open scan cannot be closed
			defer stop()
			if _, err, ok := next(); err != nil || !ok {
				t.Fatal(err, ok)
			}
			err = x.release(t.Context(), nil)
			if alone := choice == KeepOthers; (err == nil) != alone || (told != nil) != alone {
				t.Errorf("the worker ends with %v; told: %v", err, told)
			}
			if status := x.Status().Tasks; choice == KeepOthers && (len(status) != 1 || status[0].Failed == nil) {
				t.Errorf("status %+v", status)
			}
		})
	}
}
