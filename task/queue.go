package task

import (
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
)

// queue holds what was fetched of one source partition and is not processed yet.
type queue struct {
	tp    kafka.TopicPartition
	topic string // as the topology names it

	records []kafka.Record
	head    int
	// borrowed: records is the slice of the last poll, not the queue's own memory (own).
	borrowed bool
	own      []kafka.Record

	position      int64 // next offset to process
	fetched       int64 // the consumer's position: where position jumps when the queue is drained
	known         int64 // the end of the partition at the take-over; records up to there will come
	partitionTime int64 // largest timestamp processed, -1 for none
	headTime      int64 // timestamp of the head, when headKnown
	headKnown     bool
	headSkip      bool
	paused        bool
}

func (q *queue) len() int { return len(q.records) - q.head }

// offer takes what a poll brought. An empty queue borrows the poll's own slice: in the usual
// case everything is processed before the next poll and nothing is copied.
func (q *queue) offer(f *kafka.Fetched) {
	q.fetched = max(q.fetched, f.Next)
	if len(f.Records) > 0 {
		if q.len() == 0 {
			q.records, q.head, q.borrowed = f.Records, 0, true
		} else {
			q.secure()
			q.compact()
			q.records = append(q.records, f.Records...)
			q.own = q.records
			q.copyHeaders(len(q.records) - len(f.Records))
		}
	}
	if q.len() == 0 {
		q.position = max(q.position, q.fetched)
	}
}

// secure makes what is queued independent of the last poll's memory.
func (q *queue) secure() {
	if !q.borrowed {
		return
	}
	rest := q.records[q.head:]
	q.own = append(q.own[:0], rest...)
	q.records, q.head, q.borrowed = q.own, 0, false
	q.copyHeaders(0)
}

// compact moves what waits to the front of the queue's own memory, once that is the smaller
// part: a queue that never runs empty would grow for ever.
func (q *queue) compact() {
	if rest := q.records[q.head:]; q.head >= len(rest) {
		n := copy(q.records, rest)
		clear(q.records[n:])
		q.records, q.head = q.records[:n], 0
	}
}

func (q *queue) copyHeaders(from int) {
	for i := from; i < len(q.records); i++ {
		q.records[i].Headers = slices.Clone(q.records[i].Headers)
	}
}

func (q *queue) peek() *kafka.Record { return &q.records[q.head] }

// pop moves behind the head, which has been processed.
func (q *queue) pop(ms int64) {
	q.position = q.records[q.head].Offset + 1
	q.partitionTime = max(q.partitionTime, ms)
	q.headKnown = false
	if !q.borrowed {
		q.records[q.head] = kafka.Record{} // it pins its fetch buffer
	}
	q.head++
	if q.len() > 0 {
		return
	}
	q.position = max(q.position, q.fetched)
	if !q.borrowed {
		q.own = q.records[:0]
	}
	q.records, q.head, q.borrowed = nil, 0, false
}
