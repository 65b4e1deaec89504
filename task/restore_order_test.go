package task

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// assigning notes what is assigned with each call.
type assigning struct {
	kafka.Consumer
	calls []map[kafka.TopicPartition]int64
}

func (a *assigning) Assign(_ context.Context, from map[kafka.TopicPartition]int64) error {
	a.calls = append(a.calls, maps.Clone(from))
	return nil
}

func (a *assigning) Unassign(...kafka.TopicPartition) error { return nil }

// The smallest restores begin; as many more as are read at a time begin when one has ended.
func TestSmallestRestoresBegin(t *testing.T) {
	r := newRestoring(t)
	c := &assigning{}
	r.w.consumer, r.task.cfg = c, &r.w.cfg
	x := newRestoration(r.w)
	const n = activeRestores + 3
	p := &plan{task: r.task}
	for i := range int64(n) {
		size := (i*7)%n + 1 // all of 1 to n
		tp := kafka.TopicPartition{Topic: "app-counts-changelog", Partition: int32(size)}
		p.stores = append(p.stores, &storePlan{name: fmt.Sprint("store-", size), tp: tp, status: RestoreStatus{Store: fmt.Sprint("store-", size), Changelog: tp, End: size}})
	}
	if err := x.add(p); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds no room
		if err := x.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.calls) != 1 || len(c.calls[0]) != activeRestores {
		t.Fatalf("assigned %v", c.calls)
	}
	for tp := range c.calls[0] {
		if tp.Partition > activeRestores {
			t.Errorf("%v begins before smaller ones", tp)
		}
	}
	for _, a := range x.active {
		a.store.status.Next = a.store.status.End
		if err := x.finish(a); err != nil {
			t.Fatal(err)
		}
		break
	}
	if err := x.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := kafka.TopicPartition{Topic: "app-counts-changelog", Partition: activeRestores + 1}
	if _, ok := c.calls[1][next]; len(c.calls[1]) != 1 || !ok || len(x.take()) != 0 {
		t.Errorf("then %v", c.calls[1])
	}
}

// Rate and expected end follow the pace of the last seconds; the end knows that of the whole.
func TestPace(t *testing.T) {
	s := &RestoreStatus{End: 100_000}
	var p pace
	p.begin(s)
	if p.look(s) || s.Rate != 0 || !s.ExpectedEnd.IsZero() {
		t.Errorf("at once: %+v", s)
	}
	later := func(d time.Duration, offsets, records int64) {
		t.Helper()
		p.at = p.at.Add(-d)
		s.Next, s.Records = s.Next+offsets, s.Records+records
		if !p.look(s) {
			t.Fatal("it was not looked at")
		}
	}
	about := func(what string, got, want float64) {
		t.Helper()
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	later(10*time.Second, 20_000, 10_000)
	about("rate", s.Rate, 1000)
	about("seconds left", time.Until(s.ExpectedEnd).Seconds(), 40)
	later(10*time.Second, 40_000, 30_000)
	about("rate, faster", s.Rate, 2000)
	about("seconds left, faster", time.Until(s.ExpectedEnd).Seconds(), 40_000/3000.)
	later(10*time.Second, 0, 0)
	later(10*time.Second, 0, 0)
	about("rate, at a stand", s.Rate, 500)
	s.Took = 100 * time.Second
	if p.end(s); s.Rate != 400 || !s.ExpectedEnd.IsZero() {
		t.Errorf("at the end: %+v", s)
	}
}
