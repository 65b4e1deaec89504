package task

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// While the last run of a store is written the restoration goes on without it; what ends the restoration waits
// for the run, so that what was read is not read again.
func TestRestoreEndsInItsLastRun(t *testing.T) {
	for name, stop := range map[string]bool{"to the end": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			r := newRestoring(t)
			r.w.cfg.Limits.LargeRestore = 1
			x := newRestoration(r.w)
			if err := x.add(r.plan); err != nil {
				t.Fatal(err)
			}
			for len(x.ending) == 0 {
				if err := x.step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(x.active) != 0 || x.over() || r.feed.assigned || len(x.take()) != 0 {
				t.Errorf("%d active, over %v, assigned %v", len(x.active), x.over(), r.feed.assigned)
			}
			if stop {
				r.w.Stop()
				if err := x.step(t.Context()); !errors.Is(err, errStopped) {
					t.Errorf("stopped: %v", err)
				}
			}
			for !stop && !x.over() {
				if err := x.step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if done := len(x.take()); stop == (done != 0) {
				t.Errorf("stopped %v, %d plans are done", stop, done)
			}
			if err := x.end(); err != nil {
				t.Error(err)
			}
			if r.at() != statestore.At(60) {
				t.Errorf("the store is at %v", r.at())
			}
		})
	}
}

// A restoration that waits for the memory that others have for theirs neither spins nor outlives its context.
func TestRestoreWaitsForASlot(t *testing.T) {
	r := newRestoring(t)
	r.w.cfg.Limits.LargeRestore = 1
	for range 2 {
		x, err := r.task.store.RestoreRuns("counts")
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
	}
	x := newRestoration(r.w)
	if err := x.add(r.plan); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := x.step(t.Context()); err != nil || x.over() {
		t.Errorf("%v, over %v", err, x.over())
	}
	if waited := time.Since(begun); waited < idlePoll {
		t.Errorf("it waited %v", waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := x.end(); err != nil {
		t.Error(err)
	}
}

// A last run that cannot be written is the failure of its task, and the end of the restore is told.
func TestRestoreFailsInItsLastRun(t *testing.T) {
	r := newRestoring(t)
	r.w.cfg.Limits.LargeRestore = 1
	var told []RestoreEvent
	r.w.cfg.RestoreListener = func(_ processor.TaskID, e RestoreEvent, _ RestoreStatus) { told = append(told, e) }
	x := newRestoration(r.w)
	if err := x.add(r.plan); err != nil {
		t.Fatal(err)
	}
	var err error
	for behind := false; err == nil && !x.over(); {
		err = x.step(t.Context())
		if !behind && r.plan.stores[0].status.Next == 59 {
			behind = true
			if err := r.task.store.Restore("counts", nil, 1000); err != nil { // the run is before it
				t.Fatal(err)
			}
		}
	}
	var failed *Error
	if !errors.As(err, &failed) || failed.Task != r.task.id {
		t.Errorf("%v", err)
	}
	if err := x.end(); err != nil {
		t.Error(err)
	}
	if n := len(told); n == 0 || told[n-1] != RestoreSuspended {
		t.Errorf("told %v", told)
	}
}
