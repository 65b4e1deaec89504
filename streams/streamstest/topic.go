package streamstest

import (
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// topic is a topic in memory: what waits to be read, and what the topology has written.
type topic struct {
	name, real string // in the topology, and in Kafka
	reads      bool   // the topology does
	writes     bool
	end        int64 // the next record's offset

	waiting       []kafka.Record
	headTime      int64 // of the first that waits, when headKnown
	headKnown     bool
	partitionTime int64 // -1: none yet
	position      int64

	out []kafka.Record // not read by the test yet
}

// written is an output of the record in process.
type written struct {
	topic  *topic
	record kafka.Record
}

func (d *Driver) topic(topology *streams.Topology, name string) *topic {
	t := d.topics[name]
	if t == nil {
		t = &topic{name: name, real: task.RealTopic(topology, d.cfg.AppID, name), partitionTime: -1}
		d.topics[name] = t
		d.reads = append(d.reads, t)
		slices.SortFunc(d.reads, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	}
	return t
}

// put lets a record wait in its topic.
func (t *topic) put(r kafka.Record) {
	r.Topic, r.Offset = t.real, t.end
	t.end++
	t.waiting = append(t.waiting, r)
}

// pop moves behind the first record that waits.
func (t *topic) pop() {
	t.position = t.waiting[0].Offset + 1
	t.partitionTime = max(t.partitionTime, t.headTime)
	t.waiting, t.headKnown = t.waiting[1:], false
}

// take keeps an output until its record is done.
func (d *Driver) take(o processor.Output) error {
	r := kafka.Record{Timestamp: o.Timestamp.UnixMilli(), Key: clone(o.Key), Value: clone(o.Value), Headers: slices.Clone(o.Headers)}
	d.pending = append(d.pending, written{d.topics[o.Topic], r})
	return nil
}

// clone keeps nil, which is null, apart from empty.
func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
