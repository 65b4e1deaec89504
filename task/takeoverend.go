package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// The end of a take-over: the stores are restored (takeover.go), what follows makes the tasks this worker's.

// resolvePositions decides where each source partition starts: at the group's offset, or, for
// one without, at the configured start position.
func (w *Worker) resolvePositions(ctx context.Context, plans []*plan) error {
	var fresh []kafka.TopicPartition
	for _, p := range plans {
		fresh = append(fresh, p.fresh...)
	}
	var starts map[kafka.TopicPartition]int64
	if len(fresh) > 0 {
		err := w.retry(ctx, "resolve start positions", func(ctx context.Context) (err error) {
			starts, err = w.cfg.Admin.ListOffsets(ctx, w.cfg.Start.Spec, fresh...)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, p := range plans {
		p.position(starts)
	}
	return nil
}

// learnEnds captures the ends of the sources of tasks that merge several: a backlog is read in the
// order of the timestamps, whichever partition the broker sends first.
func (w *Worker) learnEnds(ctx context.Context, tasks []*Task) error {
	var tps []kafka.TopicPartition
	for _, t := range tasks {
		if len(t.queues) > 1 {
			tps = append(tps, t.partitions()...)
		}
	}
	if len(tps) == 0 {
		return nil
	}
	return w.retry(ctx, "read the sources' ends", func(ctx context.Context) error {
		ends, err := w.cfg.Admin.ListOffsets(ctx, kafka.LastStable, tps...)
		for tp, end := range ends {
			w.queues[tp].known = end
		}
		return err
	})
}

func (p *plan) position(starts map[kafka.TopicPartition]int64) {
	t := p.task
	t.streamTime = t.store.StreamTime()
	for _, q := range t.queues {
		if o, ok := p.group[q.tp]; ok {
			m := p.meta[q.tp]
			q.position, q.partitionTime = o.Offset, m.PartitionTime
			t.streamTime = max(t.streamTime, m.StreamTime, m.PartitionTime)
		} else {
			q.position = starts[q.tp]
		}
		q.fetched = q.position
	}
	// Never backwards, whatever was lost: the store, the group's metadata or the changelog.
	t.epoch = 1 + max(t.epoch, t.store.CommitID().Epoch, p.id.Epoch)
	t.number = 0
	p.learnStarts()
	p.startReplay()
}

// commitEpochs commits each task's start positions under (epoch, 0), its new epoch, before the
// first poll. From then on no other process can commit under that epoch; and a group that starts at the end
// does not lose what arrives before its first commit. What their changelogs had lost is written there by now.
func (w *Worker) commitEpochs(ctx context.Context, plans []*plan) error {
	var offsets []kafka.CommittedOffset
	for _, p := range plans {
		p.id = statestore.CommitID{Epoch: p.task.epoch}
		o, err := p.task.offsets(p.id)
		if err != nil {
			return err
		}
		offsets = append(offsets, o...)
	}
	if len(offsets) == 0 {
		return nil // a worker without tasks
	}
	if err := w.commitOffsets(ctx, offsets, "start-sent"); err != nil {
		return fmt.Errorf("commit the start positions: %w", err)
	}
	failpoint.Hit("start-committed")
	return nil
}

// commitOffsets commits offsets in a transaction of their own, beside no interval. sent is the fail point before its end, "" for none.
func (w *Worker) commitOffsets(ctx context.Context, offsets []kafka.CommittedOffset, sent string) error {
	return w.transactBeside(ctx, func(*deliveries) error {
		if err := w.sendOffsets(ctx, offsets); err != nil {
			return err
		}
		failpoint.Hit(sent)
		return nil
	})
}

// startTasks makes the stores complete at the group's commit, builds the running copies and
// assigns the sources.
func (w *Worker) startTasks(ctx context.Context, plans []*plan) error {
	from := map[kafka.TopicPartition]int64{}
	for _, p := range plans {
		if err := w.startTask(p); err != nil {
			var failed *Error
			if errors.As(err, &failed) {
				return err
			}
			return &Error{Task: p.task.id, Err: err}
		}
		for _, q := range p.task.queues {
			from[q.tp] = q.position
			p.task.sealedAt[q.tp] = q.position
		}
	}
	if err := w.consumer.Assign(ctx, from); err != nil {
		return fmt.Errorf("assign sources: %w", err)
	}
	return nil
}

func (w *Worker) startTask(p *plan) (err error) {
	t := p.task
	complete, err := t.complete()
	if err != nil {
		return err
	}
	if !complete || t.store.CommitID() != p.id || len(p.stores) > 0 {
		progress := statestore.Progress{ID: p.id, StreamTime: t.streamTime, Replaying: t.replay != nil}
		for _, q := range t.queues {
			progress.Positions = append(progress.Positions, statestore.Position{Topic: q.tp.Topic, Partition: q.tp.Partition, Next: q.position})
		}
		next := map[string]statestore.Offset{}
		for _, s := range p.stores {
			next[s.name] = statestore.At(s.status.Next)
		}
		for _, s := range p.seeds {
			next[s.name] = statestore.At(s.next)
		}
		if err := t.adopt(); err != nil {
			return err
		}
		if err := t.store.Complete(progress, next); err != nil {
			return fmt.Errorf("complete restore: %w", err)
		}
		failpoint.Hit("store-completed")
	}
	t.tellRunning()
	t.lastCommit, t.asked, t.seeded = w.now(), false, nil
	t.mute()
	w.beginReplay(t)
	w.status.opened(t.id, t.store)
	w.status.task(t.id, func(s *TaskStatus) {
		s.CommitID, s.Changelog = t.store.CommitID(), t.store.CommittedOffsets()
		s.Committed = map[kafka.TopicPartition]int64{}
		for _, q := range t.queues {
			s.Committed[q.tp], _, _ = t.toCommit(q)
		}
	})
	return w.newInstance(t)
}

// newInstance makes the running copy of a task's sub-topology.
func (w *Worker) newInstance(t *Task) (err error) {
	send := func(o processor.Output) error {
		if t.replay != nil {
			return nil // it was sent when the record came for the first time
		}
		t.wrote = true
		t.out += len(o.Key) + len(o.Value) + recordOverhead
		return w.send(o)
	}
	env := processor.Env{TaskID: t.id, Stores: t.store, Send: send, Commit: func() { w.commitNow = true }, Now: w.now,
		Dropped: t.drops(w.log), ExtractTimestamp: w.cfg.ExtractTimestamp, Caching: w.cfg.Caching, Replaying: t.replay != nil}
	streamTime := time.Time{}
	if t.streamTime >= 0 {
		streamTime = time.UnixMilli(t.streamTime)
	}
	t.inst, err = t.sub.NewInstance(env, streamTime)
	return err
}

// complete tells whether every store holds all that its commit says.
func (t *Task) complete() (bool, error) {
	stores, err := t.stores()
	for _, s := range stores {
		if !s.Complete {
			return false, err
		}
	}
	return true, err
}
