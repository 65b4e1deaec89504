package task

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// guardTombstones lets a store begin anew that is to go on from an offset which is too old. The
// broker removes a tombstone delete.retention.ms after it has compacted it: a store that last stood at its
// changelog's end before that may hold keys whose deletion is nowhere to be read any more. So may one that was imported from
// data of an unknown age.
func (w *Worker) guardTombstones(ctx context.Context, p *plan, starts map[kafka.TopicPartition]int64) error {
	at := p.task.store.CaughtUpAt()
	age := w.now().Sub(at)
	for _, s := range p.stores {
		if s.clear || s.still || s.from.IsAbsent() || s.status.Next >= s.status.End {
			continue
		}
		if at.IsZero() {
			s.clear, s.keep = true, true
			s.why = "it was imported, and nothing tells how old its data is: deletions may be missing"
			s.status.From, s.status.Next = starts[s.tp], starts[s.tp]
			continue
		}
		kept, err := w.tombstonesKept(ctx, s.tp.Topic)
		if err != nil {
			return err
		}
		if age > kept {
			s.clear = true
			s.why = fmt.Sprintf("it last stood at its changelog's end %v ago, and tombstones are kept for %v (delete.retention.ms): deletions may be missing", age.Round(time.Second), kept)
			s.status.From, s.status.Next = starts[s.tp], starts[s.tp]
		}
	}
	return nil
}

// tombstonesKept reads the delete.retention.ms of a changelog. Who may not read it is taken to have
// Kafka's default.
func (w *Worker) tombstonesKept(ctx context.Context, topic string) (time.Duration, error) {
	const name, ordinary = "delete.retention.ms", 24 * time.Hour
	var configs map[string]string
	err := w.retry(ctx, "read the configuration of "+topic, func(ctx context.Context) (err error) {
		configs, err = w.cfg.Admin.TopicConfigs(ctx, topic)
		return err
	})
	if kafka.IsClass(err, kafka.ClassUnauthorized) {
		w.log.Warn("cannot read for how long tombstones are kept; taking a day", "topic", topic, "error", err)
		return ordinary, nil
	}
	text, told := configs[name]
	if err != nil || !told {
		return ordinary, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("topic %s: %s is %q: %w", topic, name, text, err)
	}
	return time.Duration(min(ms, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond, nil
}
