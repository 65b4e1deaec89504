package task

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// open prepares for the first record: a large restore is done in runs, where the store can be.
func (x *restoring) open() (err error) {
	if x.store.still || x.store.status.Remaining() < int64(x.task.cfg.Limits.LargeRestore) {
		return nil
	}
	x.runs, err = x.task.store.RestoreRuns(x.store.name)
	switch {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		return nil
	case errors.Is(err, statestore.ErrRestoresBusy):
		return err
	}
	return &Error{Task: x.task.id, Err: err}
}

// endRuns lets the last run of a store be written while other changelogs are read.
func (r *restoration) endRuns(x *restoring) (err error) {
	if x.over, err = x.runs.End(); err != nil {
		return x.fail(err)
	}
	delete(r.active, x.store.tp)
	r.ending = append(r.ending, x)
	r.report(x)
	return r.unassign(x)
}

// finishWritten ends the restores whose last runs are written.
func (r *restoration) finishWritten() error {
	for i := 0; i < len(r.ending); {
		select {
		case <-r.ending[i].over:
		default:
			i++
			continue
		}
		if err := r.finish(r.ending[i]); err != nil {
			return err // it is still among them: its end is told by that of the restoration
		}
		r.ending = slices.Delete(r.ending, i, i+1)
	}
	return nil
}

// awaitWritten waits for a last run, or for the memory that others have, as long as a poll may wait for records.
func (r *restoration) awaitWritten(ctx context.Context) error {
	if len(r.done) > 0 || r.over() {
		return nil
	}
	var over <-chan struct{} // nil: none of its own is being written
	if len(r.ending) > 0 {
		over = r.ending[0].over
	}
	t := time.NewTimer(idlePoll)
	defer t.Stop()
	select {
	case <-over:
	case <-t.C:
	case <-ctx.Done():
	}
	r.tell()
	return ctx.Err()
}

// tellWritten makes known how far the runs go that are written.
func (x *restoring) tellWritten() {
	if at := x.runs.Written(); at > x.told {
		x.told = at
		x.task.tellRestored(x.store.name, at)
	}
}
