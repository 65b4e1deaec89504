package task

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// strict is a consumer that notices when it is used by two goroutines at once, and tells of each poll.
type strict struct {
	kafka.Consumer
	t     *testing.T
	inUse atomic.Bool
	polls chan struct{}
}

func (s *strict) use() func() {
	if !s.inUse.CompareAndSwap(false, true) {
		s.t.Error("the consumer is used by two goroutines at once")
	}
	return func() { s.inUse.Store(false) }
}

func (s *strict) Assign(ctx context.Context, from map[kafka.TopicPartition]int64) error {
	defer s.use()()
	return s.Consumer.Assign(ctx, from)
}

func (s *strict) Unassign(tps ...kafka.TopicPartition) error {
	defer s.use()()
	return s.Consumer.Unassign(tps...)
}

func (s *strict) Poll(ctx context.Context, into *kafka.Poll) error {
	defer s.use()()
	s.polls <- struct{}{}
	return s.Consumer.Poll(ctx, into)
}

// While one poll is applied the next is read; at the end of the changelog there is no next.
func TestRestoreReadsAhead(t *testing.T) {
	r := newRestoring(t)
	c := &strict{Consumer: r.feed, t: t, polls: make(chan struct{}, 10)}
	r.w.consumer = c
	x := newRestoration(r.w)
	if err := x.add(r.plan); err != nil {
		t.Fatal(err)
	}
	for i, at := range []int64{52, 59, 60} {
		if err := x.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.at(); got != statestore.At(at) {
			t.Errorf("after step %d the store is at %v, want %d", i+1, got, at)
		}
		<-c.polls
		if more := at < 60; x.ahead.underWay() != more {
			t.Errorf("after step %d a poll is under way: %v", i+1, !more)
		}
	}
	if err := x.end(); err != nil || !x.over() || r.feed.assigned || len(c.polls) != 0 {
		t.Errorf("at the end: %v, over %v, assigned %v, %d polls too many", err, x.over(), r.feed.assigned, len(c.polls))
	}
}

// silent is a consumer for which nothing ever comes.
type silent struct {
	feed
	polls chan struct{}
}

func (s *silent) Poll(ctx context.Context, into *kafka.Poll) error {
	into.Reset()
	s.polls <- struct{}{}
	<-ctx.Done()
	return nil
}

// The end of a restoration ends the poll that is under way, before it gives the changelogs back.
func TestRestoreEndsThePollUnderWay(t *testing.T) {
	r := newRestoring(t)
	inner := &silent{polls: make(chan struct{}, 1)}
	c := &strict{Consumer: inner, t: t, polls: make(chan struct{}, 1)}
	r.w.consumer = c
	x := newRestoration(r.w)
	if err := x.add(r.plan); err != nil {
		t.Fatal(err)
	}
	if err := x.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.ahead.begin(t.Context(), c)
	<-inner.polls
	if err := x.end(); err != nil || inner.assigned || x.ahead.underWay() {
		t.Errorf("%v, assigned %v, under way %v", err, inner.assigned, x.ahead.underWay())
	}
}

// What was taken last stays as it is while the next poll is read.
func TestReadAheadHasTwoBuffers(t *testing.T) {
	f := &feed{t: t, fetches: []kafka.Fetched{{Next: 1}, {Next: 2}, {Next: 3}}}
	a := newReadAhead()
	a.begin(t.Context(), f)
	for next := int64(1); ; next++ {
		got, err := a.take()
		if err != nil {
			t.Fatal(err)
		}
		if len(f.fetches) > 0 {
			a.begin(t.Context(), f)
			for len(a.results) == 0 { // until it has been filled
				runtime.Gosched()
				if t.Context().Err() != nil {
					t.Fatal(t.Context().Err())
				}
			}
		}
		if len(got.Partitions) != 1 || got.Partitions[0].Next != next {
			t.Fatalf("poll %d: %+v", next, got.Partitions)
		}
		if !a.underWay() {
			return
		}
	}
}
