package task

import (
	"slices"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

func fetched(next int64, offsets ...int64) *kafka.Fetched {
	f := &kafka.Fetched{Next: next}
	for _, o := range offsets {
		f.Records = append(f.Records, kafka.Record{Offset: o, Headers: []kafka.Header{{Key: "h"}}})
	}
	return f
}

// The position follows what was processed, and jumps over markers and holes only when
// nothing is waiting.
func TestQueuePosition(t *testing.T) {
	q := &queue{}
	q.offer(fetched(5, 1, 3))
	if q.position != 0 {
		t.Fatalf("position %d before anything was processed", q.position)
	}
	q.pop(1)
	if q.position != 2 {
		t.Fatalf("position %d behind record 1", q.position)
	}
	q.pop(1)
	if q.position != 5 {
		t.Fatalf("position %d behind the last record, the fetch ended at 5", q.position)
	}
	q.offer(fetched(9))
	if q.position != 9 {
		t.Fatalf("position %d behind a fetch of markers only", q.position)
	}
}

// What is not processed at the next poll survives the reuse of the poll's memory.
func TestQueueSecure(t *testing.T) {
	q := &queue{}
	f := fetched(4, 0, 1, 2, 3)
	q.offer(f)
	q.pop(1)
	q.secure()
	for i := range f.Records {
		f.Records[i].Headers[0].Key = "overwritten"
		f.Records[i].Offset = -1
	}
	q.offer(fetched(6, 4, 5))
	var got []int64
	for q.len() > 0 {
		if q.peek().Headers[0].Key != "h" {
			t.Errorf("record %d lost its headers", q.peek().Offset)
		}
		got = append(got, q.peek().Offset)
		q.pop(1)
	}
	if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
