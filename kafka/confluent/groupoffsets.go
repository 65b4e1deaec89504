//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// groupReader reads the offsets of one group, on a consumer instance that has the group's id and never joins
// it. librdkafka's admin client has a request for that (ListConsumerGroupOffsets) which must not be used
// (2.11): when the coordinator has moved it dies of a segmentation fault, because it looks for the
// consumer group of an instance that has none; and when a connection breaks at the wrong moment
// an assertion ends the process (librdkafka issue 4605).
type groupReader struct {
	c     *ck.Consumer
	wire  *wire
	calls sync.WaitGroup // those inside librdkafka
}

// firstSlice is how long the first call into librdkafka may last; each further one lasts twice as long. Such a
// call cannot be cut short, and the instance must outlive it.
const firstSlice = 500 * time.Millisecond

// reader gives the reader of a group. It is called under d.calls.
func (d *admin) reader(group string) (*groupReader, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	if r := d.readers[group]; r != nil {
		return r, nil
	}
	conf, err := base(d.settings, "offsets")
	if err != nil {
		return nil, err
	}
	conf["group.id"] = group
	conf["isolation.level"] = "read_committed" // this makes it *require stable*
	conf["enable.auto.commit"] = false
	conf["enable.auto.offset.store"] = false
	if err := d.client.extend(conf); err != nil {
		return nil, err
	}
	w := newWire(d.settings, "offsets", conf)
	c, err := ck.NewConsumer(&conf)
	if err != nil {
		w.close()
		return nil, err
	}
	if d.readers == nil {
		d.readers = map[string]*groupReader{}
	}
	r := &groupReader{c: c, wire: w}
	d.readers[group] = r
	return r, nil
}

// committed asks until there is an answer: for a while if no broker answers anything, and until the context
// ends if only this has no answer, because a transaction holds offsets. It does not outlive the context.
func (r *groupReader) committed(ctx context.Context, wait time.Duration, list []ck.TopicPartition) ([]ck.TopicPartition, error) {
	var got []ck.TopicPartition // not a result: a return would write to it
	err := sliced(ctx, &r.calls, r.wire, wait, func(ms int) (err error) {
		if ok, _ := r.wire.reachable(); !ok { // what fails must be told from what waits for a transaction
			if _, err := r.c.GetMetadata(nil, false, ms); err != nil {
				return err
			}
			r.wire.answer()
		}
		got, err = r.c.Committed(list, ms)
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) { // librdkafka does not say which
		err = fmt.Errorf("the coordinator does not answer, or a transaction that is still open holds offsets back: %w", err)
	}
	if err != nil {
		return nil, err // the call may still be writing to got
	}
	return got, nil
}

// sliced makes a call into librdkafka that cannot be cut short, in slices, until it does not time out any more. It gives
// up with the context, and after wait if brokers do not answer at all.
func sliced(ctx context.Context, calls *sync.WaitGroup, w *wire, wait time.Duration, call func(ms int) error) error {
	until := time.Now().Add(wait)
	for slice := min(firstSlice, wait); ; slice = min(2*slice, wait) {
		done := make(chan error, 1)
		calls.Go(func() { done <- call(max(int(slice.Milliseconds()), 1)) })
		var err error
		select {
		case err = <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !isCode(err, ck.ErrTimedOut, ck.ErrTransport, ck.ErrAllBrokersDown) {
			return err
		}
		if ok, _ := w.reachable(); !ok && !time.Now().Before(until) || !pause(ctx) {
			return err
		}
	}
}

// close waits for what is under way and destroys the instance.
func (r *groupReader) close() {
	r.calls.Wait()
	_ = r.c.Close() // it holds nothing that could be lost
	r.wire.close()
}

// readGroup runs one question for a group's offsets, again and again while the broker says that it may
// succeed later, until the context ends.
func (d *admin) readGroup(ctx context.Context, op, group string, list []ck.TopicPartition, take func([]ck.TopicPartition) error) error {
	d.calls.RLock()
	defer d.calls.RUnlock()
	if d.closed || d.life.Err() != nil {
		return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: group, Err: errClosed}
	}
	r, err := d.reader(group)
	if err != nil {
		return invalid(op, "%w", err)
	}
	return d.repeat(ctx, r.wire, op, group, func(ctx context.Context) error {
		got, err := r.committed(ctx, d.limit(ctx), list)
		if isCode(err, ck.ErrGroupIDNotFound) {
			return take(nil) // no group, no offsets; most brokers say it with an empty answer
		}
		if err != nil {
			return err
		}
		return take(got)
	})
}
