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

// A queue that never runs empty (its task waits for another partition) forgets what was
// processed: neither its memory nor the records' bytes may pile up.
func TestQueueThatNeverRunsEmpty(t *testing.T) {
	q := &queue{}
	next := int64(0)
	var want int64
	for range 1000 {
		q.secure()
		f := &kafka.Fetched{}
		for range 10 {
			f.Records = append(f.Records, kafka.Record{Offset: next, Key: []byte("k"), Headers: []kafka.Header{{Key: "h"}}})
			next++
		}
		f.Next = next
		q.offer(f)
		for q.len() > 5 {
			if q.peek().Offset != want || len(q.peek().Headers) != 1 {
				t.Fatalf("record %+v, want offset %d", *q.peek(), want)
			}
			q.pop(1)
			want++
		}
	}
	if cap(q.own) > 200 {
		t.Errorf("room for %d records is kept for %d", cap(q.own), q.len())
	}
	for i := range q.records[:q.head] {
		if q.records[i].Key != nil {
			t.Fatal("a record that was processed keeps its bytes")
		}
	}
}
