package kafkatest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// reader collects what polls bring.
type reader struct {
	c     kafka.Consumer
	poll  kafka.Poll
	got   map[kafka.TopicPartition][]string
	next  map[kafka.TopicPartition]int64
	errs  map[kafka.TopicPartition]error
	polls int
	most  int // records in the largest poll
}

func newReader(c kafka.Consumer) *reader {
	return &reader{c: c, got: map[kafka.TopicPartition][]string{}, next: map[kafka.TopicPartition]int64{}, errs: map[kafka.TopicPartition]error{}}
}

// once polls once, and checks what holds for every poll.
func (r *reader) once(ctx context.Context, t *testing.T) {
	t.Helper()
	noError(t, r.c.Poll(ctx, &r.poll))
	r.polls++
	n := 0
	seen := map[kafka.TopicPartition]bool{}
	for i := range r.poll.Partitions {
		f := &r.poll.Partitions[i]
		if seen[f.TopicPartition] {
			t.Fatalf("%s stands in one poll twice", f.TopicPartition)
		}
		seen[f.TopicPartition] = true
		n += len(f.Records)
		if f.Err != nil {
			wantClass(t, f.Err, kafka.ClassOf(f.Err))
			r.errs[f.TopicPartition] = f.Err
			continue
		}
		for j := range f.Records {
			rec := &f.Records[j]
			if rec.TopicPartition() != f.TopicPartition {
				t.Fatalf("a record of %s stands in the entry of %s", rec.TopicPartition(), f.TopicPartition)
			}
			if before, ok := r.next[f.TopicPartition]; ok && rec.Offset < before {
				t.Fatalf("%s: offset %d comes after position %d", f.TopicPartition, rec.Offset, before)
			}
			r.next[f.TopicPartition] = rec.Offset + 1
			r.got[f.TopicPartition] = append(r.got[f.TopicPartition], string(rec.Value))
		}
		if f.Next < r.next[f.TopicPartition] {
			t.Fatalf("%s: Next is %d, but the position was %d already", f.TopicPartition, f.Next, r.next[f.TopicPartition])
		}
		r.next[f.TopicPartition] = f.Next
	}
	r.most = max(r.most, n)
}

// until polls until done.
func (r *reader) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	r.untilWithin(t, patience, what, done)
}

func (r *reader) untilWithin(t *testing.T, d time.Duration, what string, done func() bool) {
	t.Helper()
	ctx := within(t, d)
	for !done() {
		if ctx.Err() != nil {
			t.Fatalf("after %v and %d polls it is still not true that %s; positions %v, errors %v", d, r.polls, what, r.next, r.errs)
		}
		r.once(ctx, t)
	}
}

// quiet polls for a while and fails if a record of tp comes.
func (r *reader) quiet(t *testing.T, tp kafka.TopicPartition) {
	t.Helper()
	before := len(r.got[tp])
	ctx := within(t, 200*time.Millisecond)
	for ctx.Err() == nil {
		r.once(ctx, t)
	}
	if more := r.got[tp][before:]; len(more) > 0 {
		t.Fatalf("%s brought %s, want nothing", tp, brief(more))
	}
}

func (r *reader) want(t *testing.T, tp kafka.TopicPartition, want []string) {
	t.Helper()
	if !slices.Equal(r.got[tp], want) {
		t.Fatalf("%s: got %s, want %s", tp, brief(r.got[tp]), brief(want))
	}
}

// assigned makes a consumer of partition 0 of a topic, and its reader.
func (s *suite) assigned(t *testing.T, cfg kafka.ConsumerConfig, topic string, from int64) (*reader, kafka.TopicPartition) {
	t.Helper()
	tp := kafka.TopicPartition{Topic: topic}
	c := s.consumer(t, cfg)
	noError(t, c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{tp: from}))
	return newReader(c), tp
}
