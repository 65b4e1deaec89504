package task

import (
	"context"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// send takes an output of a sink node: into the hold when it belongs into the transaction,
// else into the slabs that are sent after the turn.
func (w *Worker) send(o processor.Output) error {
	if o.Topic != w.sinkOf { // the next output is mostly for the same topic
		w.sinkOf, w.sink = o.Topic, w.sinks[o.Topic]
	}
	s := &w.sink
	box := w.direct
	if s.transactional {
		box = w.box
	}
	box.add(s.name, w.partition(o.Key, s.partitions), o.Key, o.Value, o.Timestamp, o.Headers)
	return nil
}

// partition chooses as Kafka's Java client does: by the key, and without one the same
// partition for a while, so that batches fill.
func (w *Worker) partition(key []byte, n int32) int32 {
	if key != nil {
		return kafka.Partition(key, n)
	}
	return w.sticky % n
}

func (w *Worker) nextSticky() { w.sticky = (w.sticky + 1) & 0x7fffffff }

// sendDirect hands the outputs of the turn to the plain producer.
func (w *Worker) sendDirect(ctx context.Context) error {
	slabs := w.direct.take()
	if len(slabs) > 0 {
		w.nextSticky()
	}
	for i, s := range slabs {
		if err := w.running.outputs.send(ctx, w.outputs, s.records, func() { w.direct.recycle(s) }); err != nil {
			for _, rest := range slabs[i:] {
				w.direct.recycle(rest)
			}
			return fmt.Errorf("send outputs: %w", err)
		}
	}
	return nil
}
