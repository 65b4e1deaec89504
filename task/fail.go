package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// OnFailure says what the failure of one task means for the others.
type OnFailure uint8

const (
	// StopApp ends the application when a task fails, after the others have committed. The default, as in
	// Kafka Streams.
	StopApp OnFailure = iota
	// KeepOthers closes the task that fails and goes on with the others. What it had not committed is dropped, and
	// nobody processes its records until the next start.
	KeepOthers
)

// String names the choice.
func (f OnFailure) String() string {
	if f == KeepOthers {
		return "keep-others"
	}
	return "stop-app"
}

// failures are the tasks of a worker that have failed alone, and what is known of those that may.
type failures struct {
	failed []failedTask
	// told is when the offsets of the failed were committed again last.
	told time.Time
	// reopened are the times at which the damaged stores of tasks were set aside.
	reopened map[processor.TaskID][]time.Time
	// alone, unless nil, has each task commit by itself until its sources are past these positions: a record that
	// cannot be produced does not say which task made it.
	alone map[kafka.TopicPartition]int64
	// searches counts those that began since a task was found.
	searches int
}

type failedTask struct {
	id      processor.TaskID
	sources []kafka.TopicPartition
}

const (
	// maxReopened is how often within an hour the damaged store of a task is set aside and restored.
	maxReopened = 3
	// maxSearches is how often the task that made a record which cannot be produced is searched for.
	maxSearches = 3
)

// failAlone ends the one task that an error is about, or makes it whole, so that the worker can go on through a reload.
// It gives the error back if that cannot be: it is not one task's, or the choice is to stop.
func (w *Worker) failAlone(err error) error {
	if disposition(err) != FailTask {
		return err
	}
	w.await()
	w.stopBesides()
	id, known := w.blame(err)
	if !known {
		return w.search(err)
	}
	t := w.taskNamed(id)
	if t == nil {
		return err
	}
	w.searches = 0
	if named := (*Error)(nil); !errors.As(err, &named) {
		err = &Error{Task: id, Err: err}
	}
	if again := w.reopen(t, err); again == nil {
		return nil
	} else if !errors.Is(again, err) {
		err = errors.Join(err, again)
	}
	if w.cfg.OnFailure != KeepOthers {
		return err
	}
	w.remove(t)
	w.giveUpTask(t, err)
	return nil
}

// giveUpTask closes a task that failed alone, and makes it known. It is not among the worker's.
func (w *Worker) giveUpTask(t *Task, err error) {
	if cerr := t.close(); cerr != nil {
		w.log.Warn("close a task that failed", "task", t.id.String(), "error", cerr)
	}
	w.giveUp(t.id, t.partitions(), err)
}

// giveUp makes known that a task, which is closed, has failed alone.
func (w *Worker) giveUp(id processor.TaskID, sources []kafka.TopicPartition, err error) {
	w.failed = append(w.failed, failedTask{id, sources})
	w.told = time.Time{}
	w.log.Error("task failed; the others go on without it", "task", id.String(), "error", err)
	w.status.failed(id)
	w.status.task(id, func(s *TaskStatus) { s.Failed = err })
	if w.cfg.Failed != nil {
		w.cfg.Failed(id, err)
	}
}

// blame tells which task an error is about. A delivery that failed names the partition: a changelog's is one task's.
func (w *Worker) blame(err error) (id processor.TaskID, known bool) {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Task, true
	}
	if len(w.tasks) == 1 {
		return w.tasks[0].id, true
	}
	var client *kafka.Error
	if !errors.As(err, &client) {
		return id, false
	}
	for _, t := range w.tasks {
		for _, s := range t.sub.Stores {
			if t.changelog(s.Name).String() == client.On {
				return t.id, true
			}
		}
	}
	return id, false
}

// search has the tasks commit one by one, up to where they are now, so that the failure comes again with a name.
func (w *Worker) search(err error) error {
	if w.cfg.OnFailure != KeepOthers || w.searches == maxSearches {
		return err
	}
	w.searches++
	w.alone = map[kafka.TopicPartition]int64{}
	for tp, q := range w.queues {
		w.alone[tp] = q.position
	}
	w.log.Warn("a record of one of several tasks cannot be produced; until it is known which, each commits alone", "error", err)
	return nil
}

// commitAlone commits what a task has done in its turn, if tasks are to commit alone.
func (w *Worker) commitAlone(ctx context.Context, t *Task) error {
	if w.alone == nil {
		return nil
	}
	err := w.collect(ctx, true)
	if err == nil {
		err = w.sealIfMoved(ctx)
	}
	if err == nil {
		err = w.collect(ctx, true)
	}
	if err != nil {
		return t.failedBy(err)
	}
	for tp, to := range w.alone {
		if q := w.queues[tp]; q == nil || q.position >= to {
			delete(w.alone, tp)
		}
	}
	if len(w.alone) == 0 {
		w.alone = nil
	}
	return err
}

// failedBy names the task in an error of what was done for it alone, unless the error names one: a producer does not
// always say whose record it could not send.
func (t *Task) failedBy(err error) error {
	var named *Error
	switch {
	case errors.As(err, &named):
		return err
	case disposition(err) == FailTask:
		return &Error{Task: t.id, Err: err}
	}
	return fmt.Errorf("task %v: %w", t.id, err)
}

// damaged tells whether a task failed because its store was found damaged.
func damaged(t *Task, err error) bool {
	return errors.Is(err, statestore.ErrCorrupt) && t.store.Err() != nil
}

// reopen sets aside the store of a task that was found damaged while it ran, and opens a new one, which the take-over
// restores. Any other error it gives back.
func (w *Worker) reopen(t *Task, err error) error {
	if !damaged(t, err) {
		return err
	}
	now := w.now()
	recent := slices.DeleteFunc(w.reopened[t.id], func(at time.Time) bool { return now.Sub(at) > time.Hour })
	if len(recent) >= maxReopened {
		return fmt.Errorf("its store was set aside and restored %d times within an hour: check the disk", len(recent))
	}
	if w.reopened == nil {
		w.reopened = map[processor.TaskID][]time.Time{}
	}
	w.reopened[t.id] = append(recent, now)
	w.log.Error("the store of a task was found damaged: it is set aside, and restored", "task", t.id.String(), "error", err)
	w.remove(t)
	_ = t.close() // it has failed, which err tells
	fresh, oerr := newTask(&w.cfg, t.sub, t.id)
	if oerr != nil {
		if w.cfg.OnFailure != KeepOthers {
			return oerr
		}
		w.giveUp(t.id, t.partitions(), errors.Join(err, oerr))
		return nil
	}
	fresh.epoch = t.epoch
	w.adopt(fresh)
	return nil
}

// sources gives the partitions that a task reads.
func (c *Config) sources(id processor.TaskID) (tps []kafka.TopicPartition) {
	for _, name := range c.Topology.Subtopologies()[id.Subtopology].Sources {
		if topic := c.Topics[RealTopic(c.Topology, c.AppID, name)]; id.Partition < topic.Partitions {
			tps = append(tps, kafka.TopicPartition{Topic: topic.Name, Partition: id.Partition})
		}
	}
	return tps
}

func (w *Worker) taskNamed(id processor.TaskID) *Task {
	for _, t := range w.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// remove takes a task out of the worker. It is not closed.
func (w *Worker) remove(t *Task) {
	w.tasks = without(w.tasks, t)
	for _, q := range t.queues {
		delete(w.queues, q.tp)
	}
}

// keepOffsets commits the offsets of the tasks that have failed as they are, now and then, so that the broker does not
// expire them.
func (w *Worker) keepOffsets(ctx context.Context) error {
	if len(w.failed) == 0 || w.now().Sub(w.told) < w.cfg.Limits.IdleCommitInterval {
		return nil
	}
	if err := w.collect(ctx, true); err != nil {
		return err
	}
	var tps []kafka.TopicPartition
	for _, f := range w.failed {
		tps = append(tps, f.sources...)
	}
	var got map[kafka.TopicPartition]kafka.CommittedOffset
	err := w.retry(ctx, "read the offsets of failed tasks", func(ctx context.Context) (err error) {
		got, err = w.cfg.Admin.CommittedOffsets(ctx, w.cfg.group(), tps...)
		return err
	})
	if err != nil {
		return err
	}
	var offsets []kafka.CommittedOffset
	for _, o := range got {
		offsets = append(offsets, o)
	}
	if len(offsets) > 0 {
		if err := w.commitOffsets(ctx, offsets, ""); err != nil {
			return fmt.Errorf("commit the offsets of failed tasks again: %w", err)
		}
	}
	w.told = w.now()
	return nil
}
