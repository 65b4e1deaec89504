package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// A client of Kafka commits what it is told to, and neither of the two lets a host forbid it: what a program commits beside its
// host shows in the group's offsets only. They are looked at now and then, and before partitions are let go of, so
// that the next to take them over does not find offsets that belong to no state.
const (
	lookEvery  = 10 * time.Second
	lookWithin = time.Second // in a revoke, and at the end
)

// watchOffsets looks while the host works.
func (h *Host) watchOffsets() {
	tick := time.NewTicker(min(max(100*h.cfg.Limits.CommitInterval, time.Second), lookEvery))
	defer tick.Stop()
	for {
		select {
		case <-h.well.Done():
			return
		case <-tick.C:
		}
		found := h.overwritten(h.well, h.Ready())
		if len(found) == 0 {
			continue
		}
		h.mu.Lock()
		if h.usable() == nil {
			if err := h.renew(h.commits(), found); err != nil {
				h.fail(err)
			}
		}
		h.unlock()
	}
}

// reclaim looks when partitions are about to be let go of: at all, since a host that finds something lets go of all. The lock is held.
func (h *Host) reclaim(ctx context.Context, tps []kafka.TopicPartition) error {
	soon, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	return h.renew(ctx, h.overwritten(soon, tps))
}

// overwritten gives those of the partitions whose offset somebody else has committed.
func (h *Host) overwritten(ctx context.Context, tps []kafka.TopicPartition) (found []kafka.CommittedOffset) {
	if len(tps) == 0 {
		return nil
	}
	got, err := h.committed(ctx, tps...)
	if err != nil {
		h.log.Debug("look at the group's offsets", "error", err)
		return nil
	}
	for _, tp := range tps {
		if o, ok := got[tp]; ok {
			if _, err := task.DecodeMetadata(o.Metadata); errors.Is(err, task.ErrForeignMetadata) {
				found = append(found, o)
			}
		}
	}
	return found
}

// renew commits what the state stands at, in place of offsets of somebody else, and tells of them. The lock is held.
func (h *Host) renew(ctx context.Context, found []kafka.CommittedOffset) error {
	tasks := map[*task.Hosted][]processor.TaskID{}
	var offsets []string
	for _, o := range found {
		w := h.worker(o.Partition)
		if w == nil || h.halfway[w] || !w.Has(o.TopicPartition) {
			continue // it went away meanwhile
		}
		offsets = append(offsets, fmt.Sprintf("offset %d of %v", o.Offset, o.TopicPartition))
		if id := (processor.TaskID{Partition: o.Partition}); !slices.Contains(tasks[w], id) {
			tasks[w] = append(tasks[w], id)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	now := "those of the state were committed again, so that a host can be opened again"
	for w, ids := range tasks {
		w.Renew(ids)
		if err := w.Commit(ctx, ctx); err != nil {
			h.halfway[w] = true
			now = fmt.Sprintf("those of the state could not be committed again (%v)", err)
		}
	}
	return fmt.Errorf("%w: %s: leave offsets to the host, which commits them with the state; %s", task.ErrForeignCommit, task.NotOurs(h.consumer.Group, offsets...), now)
}
