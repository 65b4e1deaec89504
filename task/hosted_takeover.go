package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// Taken are tasks whose stores are restored, and which are nobody's yet: [Hosted.Seed] and [Hosted.Absorb], or Close,
// must follow.
type Taken struct {
	w     *Worker
	plans []*plan
}

// TakeOver opens and restores tasks that the group gave to a member, beside whatever the worker
// does. Any goroutine may call it, several at once for different tasks. It ends early with ctx.
func (h *Hosted) TakeOver(ctx context.Context, m kafka.Member, ids []processor.TaskID) (_ *Taken, err error) {
	x := &Taken{w: NewWorker(h.cfg, nil)} // not of h.w.cfg: Absorb writes that meanwhile
	x.w.status = h.w.status
	cfg := &x.w.cfg
	cfg.Started, x.w.ids = m, ids
	defer context.AfterFunc(h.w.stopped, x.w.stop)()
	defer context.AfterFunc(ctx, x.w.stop)()
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close(ctx))
		}
	}()
	if x.w.consumer, err = cfg.Consumer(); err != nil {
		return nil, fmt.Errorf("open consumer: %w", err)
	}
	if err := x.w.openTasks(ctx); err != nil {
		return nil, err
	}
	if x.plans, err = x.w.bringAll(ctx); err != nil {
		return nil, err
	}
	x.w.closeClients(ctx, x.w.consumer)
	x.w.consumer = nil
	return x, nil
}

// Close closes the tasks and what was opened for them.
func (x *Taken) Close(ctx context.Context) error {
	var ids []processor.TaskID
	for _, t := range x.w.tasks {
		ids = append(ids, t.id)
	}
	x.w.status.forget(ids)
	return x.w.release(ctx, nil)
}

// Seed writes the stores of tasks into their changelogs again that have lost them, so that Absorb need not: it takes as
// long as the stores are large. Like TakeOver it runs beside the worker, whose producer it needs for one bounded transaction
// at a time: turn has to call write, with a context that lasts as long as a commit, when this goroutine may call the worker's
// methods, and gives its error back. An error of write concerns the worker as one of Commit does; those that may go away are
// tried again. It ends early with ctx. After an error the tasks are closed.
func (h *Hosted) Seed(ctx context.Context, x *Taken, turn func(write func(context.Context) error) error) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close(ctx))
		}
	}()
	unhook := context.AfterFunc(h.w.stopped, x.w.stop)
	defer unhook()
	for _, p := range x.plans {
		err := x.w.seedStores(ctx, p, func(ctx context.Context, piece *seedPiece) error {
			// Twice in the log a piece does no harm.
			return x.w.retry(ctx, "write a store into its changelog", func(context.Context) error {
				return turn(func(ctx context.Context) error { return h.writePiece(ctx, x, piece) })
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *Hosted) writePiece(ctx context.Context, x *Taken, piece *seedPiece) error {
	if err := h.w.collect(ctx, true); err != nil {
		return err
	}
	if err := h.join(x); err != nil {
		return err
	}
	return h.w.writePiece(ctx, piece)
}

// join makes the member of tasks that were taken over the worker's, or tells that it is another.
func (h *Hosted) join(x *Taken) error {
	w := h.w
	if m := x.w.cfg.Started; len(w.tasks) == 0 {
		w.cfg.Started = m
	} else if !m.Same(w.cfg.Started) {
		return fmt.Errorf("%w: member %q is now %q", ErrLost, w.cfg.Started.ID, m.ID)
	}
	return nil
}

// Absorb makes tasks this worker's own, which begins a new epoch of theirs, and gives the positions
// where they begin. Since the restore no other member can have committed for them: the group
// knows only this one. After an error they are closed.
func (h *Hosted) Absorb(ctx context.Context, x *Taken) (from map[kafka.TopicPartition]int64, err error) {
	w := h.w
	defer func() { err = errors.Join(err, x.Close(ctx)) }() // what is left of it
	if err := w.collect(ctx, true); err != nil {
		return nil, err
	}
	if err := h.join(x); err != nil {
		return nil, err
	}
	if err := w.seedNow(ctx, x.plans); err != nil { // what Seed has not done
		return nil, err
	}
	if err := h.start(ctx, x.plans); err != nil {
		return nil, err
	}
	from = map[kafka.TopicPartition]int64{}
	for _, t := range x.w.tasks {
		t.cfg = &w.cfg
		w.tasks = append(w.tasks, t)
		for _, q := range t.queues {
			w.queues[q.tp] = q
			from[q.tp] = q.position
		}
	}
	x.w.tasks = nil
	return from, nil
}
