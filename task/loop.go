package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	// turnRecords is how many records of one task are processed before it is the next one's
	// turn and the commit triggers are looked at.
	turnRecords = 1000
	// idlePoll bounds a poll that has nothing to wait for but records.
	idlePoll = 50 * time.Millisecond
)

// loop polls, processes and commits until the worker is stopped (nil: everything processed is
// committed) or something fails.
func (w *Worker) loop(ctx context.Context) error {
	w.tellState()
	for {
		if err := w.collect(ctx, false); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if m := w.cfg.Member(); !m.Same(w.cfg.Started) {
			return fmt.Errorf("%w: member %q is now %q", ErrLost, w.cfg.Started.ID, m.ID)
		}
		if w.stopping() {
			return w.finish(ctx)
		}
		if err := w.absorb(ctx); errors.Is(err, errNotStarted) {
			continue // to the end: others have processed, which is to be committed
		} else if err != nil {
			return w.failRunning(ctx, err)
		}
		if err := w.pollOnce(ctx); err != nil {
			return err
		}
		if err := w.processAll(ctx); err != nil {
			return err
		}
		w.tellState()
		if err := w.keepOffsets(ctx); err != nil {
			return err
		}
		w.purge(ctx)
	}
}

// finish commits the last interval of a worker that is being stopped.
func (w *Worker) finish(ctx context.Context) error {
	w.status.state("closing")
	if err := w.collect(ctx, true); err != nil {
		return err
	}
	if err := w.sealIfMoved(ctx); err != nil {
		return err
	}
	err := w.collect(ctx, true)
	failpoint.Hit("last-commit")
	return err
}

// processAll works on everything that waits, turn by turn, and commits when it is time.
func (w *Worker) processAll(ctx context.Context) error {
	for {
		now, total, dirty := w.now(), 0, 0
		for _, t := range w.tasks {
			n, err := t.process(turnRecords, now)
			w.count(n, now)
			total += n
			if err == nil {
				err = w.endReplay(t)
			}
			if err == nil {
				err = t.punctuate(now)
			}
			if err == nil {
				err = t.warmUp()
			}
			if err != nil {
				return w.failRunning(ctx, err)
			}
			if err := w.commitAlone(ctx, t); err != nil {
				return err
			}
			// Many tasks, or large records, reach a bound before all have had their turn.
			if dirty += t.store.DirtyBytes(); w.reached(dirty) {
				if err := w.endTurn(ctx); err != nil {
					return err
				}
				dirty = 0
			}
		}
		if err := w.endTurn(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if total == 0 || w.stopping() {
			return nil
		}
	}
}

// reached tells whether a bound of the interval is, with so many dirty bytes.
func (w *Worker) reached(dirty int) bool {
	l := &w.cfg.Limits
	return dirty >= l.MaxDirtyBytes || w.box.bytes >= l.MaxHeldBytes || w.direct.bytes >= l.MaxHeldBytes
}

// endTurn lets the outputs of the turn go, and commits if it is time.
func (w *Worker) endTurn(ctx context.Context) error {
	if err := w.sendDirect(ctx); err != nil {
		return err
	}
	return w.commitIfDue(ctx)
}

func (w *Worker) count(n int, now time.Time) {
	if n == 0 {
		return
	}
	if w.running.started.IsZero() {
		w.running.started = now
	}
	w.running.records += n
	w.status.processed.Add(int64(n))
}

// failRunning gives up the running interval, whose records include one that failed. The
// sealed one, all good, is completed first.
func (w *Worker) failRunning(ctx context.Context, err error) error {
	if cerr := w.collect(ctx, true); cerr != nil {
		return errors.Join(err, cerr)
	}
	return err
}

// commitIfDue looks at the triggers. While an interval is sealed the next one goes on, up to
// its bounds; there it waits (T4).
func (w *Worker) commitIfDue(ctx context.Context) error {
	if err := w.collect(ctx, false); err != nil {
		return err
	}
	l, now := &w.cfg.Limits, w.now()
	dirty := 0
	for _, t := range w.tasks {
		dirty += t.store.DirtyBytes()
	}
	full := w.reached(dirty) || (l.CommitRecords > 0 && w.running.records >= l.CommitRecords)
	due := full || w.commitNow || (!w.running.started.IsZero() && now.Sub(w.running.started) >= l.CommitInterval)
	if !due {
		w.commitIdle(now)
		w.writeSeeds(ctx)
		return nil
	}
	if w.sealed != nil && full {
		if err := w.collect(ctx, true); err != nil {
			return err
		}
	}
	if w.sealed == nil && w.seedTurn && w.writeSeeds(ctx) && full {
		if err := w.collect(ctx, true); err != nil {
			return err
		}
	}
	if w.sealed != nil {
		return nil
	}
	return w.sealIfMoved(ctx)
}

// commitIdle commits positions that moved without a record (behind transaction markers), and
// those that did not move for a long time, so that the broker does not expire them.
func (w *Worker) commitIdle(now time.Time) {
	if w.sealed != nil || !w.running.started.IsZero() {
		return
	}
	for _, t := range w.tasks {
		if t.moved() || now.Sub(t.lastCommit) >= w.cfg.Limits.IdleCommitInterval {
			w.running.started = now // commits when the interval is over
			return
		}
	}
}

// sealIfMoved seals the running interval and starts its commit. What tables hold back belongs into
// the interval, and may make outputs.
func (w *Worker) sealIfMoved(ctx context.Context) error {
	for _, t := range w.tasks {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if err := w.sendDirect(ctx); err != nil {
		return err
	}
	failpoint.Hit("processed")
	iv, now := w.running, w.now()
	for _, t := range w.tasks {
		if !t.moved() && now.Sub(t.lastCommit) < w.cfg.Limits.IdleCommitInterval {
			continue
		}
		s, err := t.seal()
		if err != nil {
			return err
		}
		t.lastCommit = now
		w.tellOutlived(t)
		iv.tasks = append(iv.tasks, s)
	}
	w.commitNow = false
	w.running = newInterval()
	if len(iv.tasks) == 0 {
		return nil // nobody wrote anything either: a task that did has moved
	}
	if iv.held = w.box.take(); len(iv.held) > 0 {
		w.nextSticky()
	}
	w.sealed = iv
	go func() { w.results <- w.commit(ctx, iv) }() // ended by collect or await
	return nil
}

// collect takes the result of the commit under way, waiting for it if asked to, and makes it
// public: only then does the owner let go of the sealed overlays.
func (w *Worker) collect(ctx context.Context, wait bool) error {
	if w.sealed == nil {
		return nil
	}
	var res commitResult
	if wait {
		res = <-w.results
	} else {
		select {
		case res = <-w.results:
		default:
			return nil
		}
	}
	return w.take(ctx, res)
}

// take ends the sealed interval with what became of it.
func (w *Worker) take(ctx context.Context, res commitResult) error {
	w.sealed = nil
	if p := res.interval.seed; p != nil {
		w.pieceEnded(p, res.err)
		return res.err
	}
	if res.err != nil && !res.transacted && kafka.IsClass(res.err, kafka.ClassInDoubt) {
		res = w.resolve(ctx, res)
	}
	if res.err != nil {
		return fmt.Errorf("commit: %w", res.err)
	}
	for _, s := range res.interval.tasks {
		s.task.store.Release(s.sealed)
	}
	w.commits++
	w.seedTurn = true
	w.status.committed(res)
	return nil
}
