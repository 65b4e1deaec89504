package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// watch looks at the group's offsets all the time, as any client may. They never go back, nor
// do the commit ids in them.
type watch struct {
	adm   *kadm.Client
	group string
	over  sync.WaitGroup
	end   context.CancelFunc

	mu      sync.Mutex
	last    map[kafka.TopicPartition]committed
	looks   []look
	changed chan struct{} // closed and replaced at every look
	slow    time.Duration // the longest that an answer took since slowest was called
	err     error
}

type committed struct {
	offset int64
	id     statestore.CommitID
}

// look is what was committed, at the latest, at a time.
type look struct {
	at   int64 // Unix milliseconds
	tp   kafka.TopicPartition
	next int64
}

func startWatch(ctx context.Context, adm *kadm.Client, group string) *watch {
	w := &watch{adm: adm, group: group, last: map[kafka.TopicPartition]committed{}, changed: make(chan struct{})}
	ctx, w.end = context.WithCancel(ctx)
	w.over.Go(func() { w.run(ctx) })
	return w
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		lctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := w.adm.FetchOffsets(lctx, w.group)
		cancel()
		w.took(time.Since(began))
		if err != nil {
			continue // the broker is away, or there is no group yet; the next look tells
		}
		w.seen(got, time.Now().UnixMilli())
	}
}

func (w *watch) took(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = max(w.slow, d)
}

// slowest gives how long the slowest answer took since it was last called.
func (w *watch) slowest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.slow
	w.slow = 0
	return d
}

// seen compares a look with those before it.
func (w *watch) seen(got kadm.OffsetResponses, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got.Each(func(o kadm.OffsetResponse) {
		if o.Err != nil || o.At < 0 {
			return
		}
		tp := kafka.TopicPartition{Topic: o.Topic, Partition: o.Partition}
		m, err := task.DecodeMetadata(o.Metadata)
		if err != nil {
			w.err = errors.Join(w.err, fmt.Errorf("offset of %v: %w", tp, err))
		}
		before, now := w.last[tp], committed{o.At, m.ID}
		if now.offset < before.offset || now.id.Compare(before.id) < 0 {
			w.err = errors.Join(w.err, fmt.Errorf("the group's offset of %v went back from %d at commit %v to %d at %v", tp, before.offset, before.id, now.offset, now.id))
		}
		if now != before {
			w.looks = append(w.looks, look{at, tp, now.offset})
			w.last[tp] = now
		}
	})
	close(w.changed)
	w.changed = make(chan struct{})
}

// least gives an offset that was committed, certainly, before a time.
func (w *watch) least(tp kafka.TopicPartition, at int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var n int64
	for _, l := range w.looks {
		if l.tp == tp && l.at < at {
			n = l.next
		}
	}
	return n
}

// await waits until the group has committed up to the ends.
func (w *watch) await(ctx context.Context, ends map[kafka.TopicPartition]int64) error {
	for {
		w.mu.Lock()
		changed, err := w.changed, w.err
		var missing error
		for tp, end := range ends {
			if w.last[tp].offset < end {
				missing = fmt.Errorf("%v is committed up to %d of %d", tp, w.last[tp].offset, end)
			}
		}
		w.mu.Unlock()
		if err != nil || missing == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("no progress: %w (%w)", missing, ctx.Err())
		}
	}
}

func (w *watch) stop() {
	w.end()
	w.over.Wait()
}
