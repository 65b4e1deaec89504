package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// inputEnds gives the ends of the topics that the application reads, as far as they exist,
// before it starts: what of them is not committed has to be processed, perhaps again.
func inputEnds(ctx context.Context, o options, p *place, topology *streams.Topology) (map[kafka.TopicPartition]int64, error) {
	var names []string
	for _, sub := range topology.Subtopologies() {
		for _, source := range sub.Sources {
			names = append(names, task.RealTopic(topology, o.app, source))
		}
	}
	found, err := p.admin.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	var all []kafka.TopicPartition
	for _, t := range found {
		for n := range t.Partitions {
			all = append(all, kafka.TopicPartition{Topic: t.Name, Partition: n})
		}
	}
	return p.admin.ListOffsets(ctx, kafka.HighWatermark, all...)
}

// isTakenOver tells whether all tasks stand where they begin to process.
func isTakenOver(s streams.Status) bool {
	return s.State != streams.Starting && s.State != streams.Restoring && len(s.Workers) > 0 &&
		!slices.ContainsFunc(s.Workers, func(w task.Status) bool { return len(w.Tasks) == 0 || w.Tasks[0].Committed == nil })
}

// reportFound says what a run found that is not the first.
func reportFound(show *display, app string, s streams.Status, ends map[kafka.TopicPartition]int64) {
	var tasks, existing int
	var wal, restored int64
	var took time.Duration
	offsets, behind := map[string]int64{}, map[string]int64{}
	for _, w := range s.Workers {
		for _, t := range w.Tasks {
			tasks++
			some := t.Found.Existing
			wal += t.Found.WALBytes
			for store, offset := range t.Found.Changelog {
				if next, ok := offset.Next(); ok {
					offsets[store] += next
					some = true // also a store whose restore was killed
				}
			}
			if some {
				existing++
			}
			for _, r := range t.Restore {
				restored += r.Records
				took = max(took, r.Took)
			}
			for tp, position := range t.Found.Positions {
				behind[short(app, tp.Topic)] += max(ends[tp]-position, 0)
			}
		}
	}
	if len(behind) == 0 {
		show.printf("found: nothing, this is a first start")
		return
	}
	show.printf("found: state of %d of %d tasks, changelog offsets in the store: %s", existing, tasks, list(offsets))
	show.printf("log replayed: %s bytes of the store's own", grouped(wal))
	show.printf("restored: %s records from the changelog in %v", grouped(restored), took.Round(time.Millisecond))
	show.printf("to reprocess: %s records at most (what the end of the last run cut off, and what it had not come to)", list(behind))
}

// list writes names with their numbers.
func list(m map[string]int64) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range sortedKeys(m) {
		parts = append(parts, name+" "+grouped(m[name]))
	}
	return strings.Join(parts, ", ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
