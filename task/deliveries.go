package task

import (
	"context"
	"sync"

	"github.com/tidemark-streams/tidemark/kafka"
)

// deliveries counts what was sent and what was reported, for one interval.
type deliveries struct {
	mu      sync.Mutex
	pending int
	err     error
	next    map[kafka.TopicPartition]int64
	changed chan struct{} // closed and replaced when pending reaches zero
}

func newDeliveries() *deliveries {
	return &deliveries{next: map[kafka.TopicPartition]int64{}, changed: make(chan struct{})}
}

// send hands records to the producer and counts them until they are reported; done, if not
// nil, is called then, from the producer's goroutine.
func (d *deliveries) send(ctx context.Context, p kafka.Producer, records []kafka.Record, done func()) error {
	d.mu.Lock()
	d.pending++
	d.mu.Unlock()
	err := p.Send(ctx, records, func(r kafka.Delivery) {
		d.report(r)
		if done != nil {
			done()
		}
	})
	if err != nil {
		d.report(kafka.Delivery{Err: err})
	}
	return err
}

func (d *deliveries) report(r kafka.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending--
	if r.Err != nil && d.err == nil {
		d.err = r.Err
	}
	for _, n := range r.Next {
		if n.Offset > d.next[n.TopicPartition] {
			d.next[n.TopicPartition] = n.Offset
		}
	}
	if d.pending == 0 {
		close(d.changed)
		d.changed = make(chan struct{})
	}
}

// wait returns when everything sent so far is reported, with the first failure.
func (d *deliveries) wait(ctx context.Context) error {
	for {
		d.mu.Lock()
		pending, err, changed := d.pending, d.err, d.changed
		d.mu.Unlock()
		if pending == 0 {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &kafka.Error{Class: kafka.ClassTimeout, Op: "wait for deliveries", Err: ctx.Err()}
		}
	}
}

// failed gives the first failure reported so far.
func (d *deliveries) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *deliveries) offset(tp kafka.TopicPartition) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.next[tp]
	return n, ok
}
