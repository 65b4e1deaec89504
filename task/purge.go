package task

import (
	"context"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// purging deletes from internal topics what the tasks have read of them: nobody else reads these,
// and their retention is unlimited. One request at a time is under way, in a goroutine of its own
// that the worker owns; the rest belongs to the worker's goroutine.
type purging struct {
	next time.Time
	told map[kafka.TopicPartition]int64 // what was asked for last
	busy bool
	done chan error // has room for one
	stop context.CancelFunc
	off  bool // it is not allowed to
}

// purge starts a purge when it is time for one. Only what is on the disk of this host counts as read:
// a store that is not in a changelog can have what a crash cost it from nowhere else.
func (w *Worker) purge(ctx context.Context) {
	p, now := &w.purging, w.now()
	if p.busy {
		select {
		case err := <-p.done:
			p.busy = false
			w.purged(err)
		default:
		}
	}
	if p.busy || p.off || now.Before(p.next) {
		return
	}
	p.next = now.Add(w.cfg.Limits.PurgeInterval)
	before := map[kafka.TopicPartition]int64{}
	for _, t := range w.tasks {
		for _, q := range t.queues {
			if _, internal := w.cfg.Topology.Internal(q.topic); !internal {
				continue
			}
			if n := t.durable(q.tp); n > p.told[q.tp] {
				before[q.tp] = n
			}
		}
	}
	if len(before) == 0 {
		return
	}
	if p.told == nil {
		p.told, p.done = map[kafka.TopicPartition]int64{}, make(chan error, 1)
	}
	for tp, n := range before {
		p.told[tp] = n
	}
	ctx, p.stop = context.WithTimeout(ctx, w.cfg.Limits.RetryTimeout)
	p.busy = true
	go func() { p.done <- w.cfg.Admin.DeleteRecords(ctx, before) }() // ended by purge or stopPurge
}

// durable gives the position of a source that is on the disk; 0 for none.
func (t *Task) durable(tp kafka.TopicPartition) int64 {
	for _, p := range t.store.DurablePositions() {
		if p.Topic == tp.Topic && p.Partition == tp.Partition {
			return p.Next
		}
	}
	return 0
}

// purged looks at the outcome: what failed is asked for again next time, or not at all.
func (w *Worker) purged(err error) {
	w.purging.stop()
	if err == nil {
		return
	}
	clear(w.purging.told)
	if kafka.IsClass(err, kafka.ClassUnauthorized) {
		w.purging.off = true
		w.log.Warn("repartition topics are not purged and grow without bound: the application needs the ACL Delete on its internal topics", "error", err)
		return
	}
	w.log.Debug("purge repartition topics", "error", err)
}

// stopPurge ends a purge that is under way.
func (w *Worker) stopPurge() {
	if w.purging.busy {
		w.purging.stop()
		w.purged(<-w.purging.done)
		w.purging.busy = false
	}
}
