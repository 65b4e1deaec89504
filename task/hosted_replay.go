package task

import (
	"github.com/tidemark-streams/tidemark/kafka"
)

// Replaying tells whether the task of a partition is processing records again for stores without a
// changelog. The partition must be here. [Hosted.Send] drops what it is given meanwhile.
func (h *Hosted) Replaying(tp kafka.TopicPartition) bool {
	return h.w.taskOf(h.w.queues[tp]).replay != nil
}

// Waits tells whether the next record of a partition is not to be given to Process yet: it was never processed, and
// the task's replay has other partitions to go. It has to come again when the replay is over.
func (h *Hosted) Waits(tp kafka.TopicPartition, offset int64) bool {
	q := h.w.queues[tp]
	t := h.w.taskOf(q)
	if t.replay == nil || !t.replay.pass(q, offset) {
		return false
	}
	return !t.replayed()
}

// reachLive ends a replay before the first record behind it.
func (h *Hosted) reachLive(t *Task, q *queue, offset int64) error {
	if t.replay == nil || !t.replay.pass(q, offset) {
		return nil
	}
	return h.w.endReplay(t)
}

// pass moves a source to the end of its replay if its next record is behind that: what was between is gone,
// or was no record.
func (r *replay) pass(q *queue, offset int64) bool {
	if offset < r.to[q.tp] {
		return false
	}
	q.position = max(q.position, r.to[q.tp])
	return true
}
