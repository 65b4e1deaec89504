package embedded

import (
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// afterReplay has the records come again that had to wait for a replay, if it is over: the other inputs of
// its task may have been ahead.
func (h *Host) afterReplay(w *task.Hosted, tp kafka.TopicPartition) {
	if !w.Has(tp) || w.Replaying(tp) {
		return
	}
	to := map[kafka.TopicPartition]int64{}
	for _, topic := range h.inputs {
		other := kafka.TopicPartition{Topic: topic, Partition: tp.Partition}
		if p := h.parts[other]; other != tp && p != nil && p.state == here && w.Has(other) && p.fence >= w.Position(other) {
			to[other] = w.Position(other)
		}
	}
	if len(to) > 0 {
		h.later = append(h.later, func() error { return h.consumer.Seek(to) })
	}
}
