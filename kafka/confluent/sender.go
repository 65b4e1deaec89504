//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

var errNoOffset = errors.New("the broker acknowledged the record without its offset (a repeated request)")

const (
	// grace is how long a call may outlive its context before it is left behind: the
	// library rounds its own time limits up.
	grace = 250 * time.Millisecond
	// slice is how long one library call runs before its context is looked at again.
	slice = 200 * time.Millisecond
	// resumeAfter is how long a transaction call runs before it is resumed so that its context is looked at again. It is long
	// because librdkafka (2.14.1) mistakes what is left of a resumed call for the answer to its next step when its main thread
	// has not come to it meanwhile, which ends the process by an assertion: rd_kafka_txn_set_state, an invalid transition. Slices
	// of 200 ms did so at a load of 80 on two cores.
	resumeAfter = 3 * time.Second
	// stuckAfter is when a retired instance that does not end is counted as abandoned.
	stuckAfter = 30 * time.Second
	// queueRetry is how often a full queue is tried again when no report makes room.
	queueRetry = 5 * time.Millisecond
	// Kafka's limit; librdkafka panics the process from 512 on.
	maxTopicName = 249
)

// sender is one librdkafka producer instance with the goroutine that serves its events.
type sender struct {
	p      *ck.Producer
	wire   *wire
	ledger *ledger
	bound  int           // most records without a fate
	room   chan struct{} // a token: reports came in since it was taken

	refused chan *send // Sends of which nothing is left to wait for

	sending sync.Mutex     // held while records are handed over
	calls   sync.WaitGroup // transaction calls inside the library
	api     sync.Mutex     // guards inside, and is held while cause asks
	inside  bool           // see mark
	closing atomic.Bool
	retired atomic.Bool
	stop    chan struct{} // closed with closing
	settled chan struct{} // closed when everything was reported
	gone    chan struct{} // closed when the instance is destroyed
	counted sync.Once     // abandoned is counted once

	alive   bool       // serve's: a record was acknowledged
	why     error      // serve's: what made librdkafka drop the records of this run
	msg     ck.Message // scratch of Send, under sending
	headers []ck.Header
}

func newSender(s kafka.Settings, part string, bound int, conf ck.ConfigMap) (*sender, error) {
	w := newWire(s, part, conf)
	p, err := ck.NewProducer(&conf)
	if err != nil {
		w.close()
		return nil, err
	}
	n := &sender{p: p, wire: w, ledger: newLedger(), bound: bound, room: make(chan struct{}, 1),
		refused: make(chan *send), stop: make(chan struct{}), settled: make(chan struct{}), gone: make(chan struct{})}
	go n.serve()
	return n, nil
}

// serve handles events until the producer is closed. It must never wait: when it does not
// read, the library's poller blocks, and with it every report and every commit.
func (n *sender) serve() {
	events := n.p.Events()
	ended := make([]*send, 0, 64)
	for {
		ended = ended[:0]
		select {
		case ev, ok := <-events:
			if !ok {
				return
			}
			ended = n.handle(ev, events, ended)
			if n.alive {
				n.wire.answer()
				n.alive = false
			}
			select {
			case n.room <- struct{}{}:
			default:
			}
		case s := <-n.refused:
			ended = append(ended, s)
		}
		n.ledger.report(ended...)
		clear(ended)
	}
}

// handle counts a run of reports under one lock.
func (n *sender) handle(ev ck.Event, more <-chan ck.Event, ended []*send) []*send {
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	n.why = nil
	for left := 1024; ; left-- {
		switch e := ev.(type) {
		case *ck.Message:
			if s := n.count(e); s != nil {
				ended = append(ended, s)
			}
		case ck.Error:
			n.wire.event(e)
		}
		if left == 0 {
			return ended
		}
		var ok bool
		select {
		case ev, ok = <-more:
			if !ok {
				return ended
			}
		default:
			return ended
		}
	}
}

func (n *sender) count(m *ck.Message) *send {
	tp := &m.TopicPartition
	if tp.Error == nil {
		n.alive = true
		return n.ledger.delivered(*tp.Topic, tp.Partition, int64(tp.Offset), nil)
	}
	if !isCode(tp.Error, ck.ErrPurgeQueue, ck.ErrPurgeInflight) {
		n.ledger.torn = true
	}
	on := kafka.TopicPartition{Topic: *tp.Topic, Partition: tp.Partition}
	return n.ledger.delivered(*tp.Topic, tp.Partition, -1, n.refusal(on, tp.Error, &n.why))
}

// refusal gives the error for a record that was not written. why holds the cause of a failed
// transaction, once it was found out.
func (n *sender) refusal(on kafka.TopicPartition, err error, why *error) *kafka.Error {
	switch {
	case isCode(err, ck.ErrFatal): // stands for the error that made the producer useless
		if fatal := n.p.GetFatalError(); fatal != nil {
			err = fatal
		}
	case !isCode(err, ck.ErrPurgeQueue, ck.ErrPurgeInflight, ck.ErrState):
	case n.closing.Load():
		return n.closedError()
	default:
		if *why == nil {
			*why = n.cause()
		}
		if *why != nil {
			_, class := judge(*why)
			return &kafka.Error{Class: class, Op: "produce", On: on.String(), Err: *why}
		}
	}
	return n.wire.fail("produce", on.String(), err)
}

// cause gives the error of a transaction that has failed by itself, or nil. librdkafka
// drops the records of such a transaction without saying why; the reason is what any call
// answers that is not allowed in that state. Begin is one that has no other effect, unless
// the transaction has ended meanwhile: hence inside, and the lock around it.
func (n *sender) cause() error {
	n.api.Lock()
	defer n.api.Unlock()
	if !n.inside {
		return nil
	}
	err := n.p.BeginTransaction()
	if e := (ck.Error{}); errors.As(err, &e) && (e.IsFatal() || e.TxnRequiresAbort()) {
		return err
	}
	return nil
}

// mark says whether librdkafka is in a transaction that nobody has begun to end.
func (n *sender) mark(inside bool) {
	n.api.Lock()
	n.inside = inside
	n.api.Unlock()
}

func (n *sender) closedError() *kafka.Error {
	return &kafka.Error{Class: kafka.ClassClosed, Op: "produce", Err: errors.New("the producer was closed")}
}

// send hands records over. The first record that the library does not take ends it: the
// rest is refused, and the report tells.
func (n *sender) send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	if err := check(records); err != nil {
		return err
	}
	n.sending.Lock()
	defer n.sending.Unlock()
	for !n.ledger.fits(len(records), n.bound) {
		if err := n.backOff(ctx); err != nil {
			return err
		}
	}
	if n.closing.Load() {
		return n.closedError()
	}
	if ctx.Err() != nil {
		return n.wire.late("produce", "", ctx.Err())
	}
	s, err := n.ledger.enter(records, report)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return n.turnBack(s)
	}
	for i := range records {
		if err := n.produce(ctx, &records[i]); err != nil {
			if n.ledger.refuse(s, records[i:], err) != nil {
				return n.turnBack(s)
			}
			return nil
		}
	}
	return nil
}

// turnBack has a Send reported that waits for nothing: not from inside Send, but by serve.
func (n *sender) turnBack(s *send) error {
	n.refused <- s // serve ends only after the instance is closed, which needs sending
	return nil
}

// produce hands one record over, and waits while the queue is full.
func (n *sender) produce(ctx context.Context, r *kafka.Record) error {
	m := &n.msg
	if m.TopicPartition.Topic == nil || *m.TopicPartition.Topic != r.Topic {
		topic := r.Topic
		m.TopicPartition.Topic = &topic
	}
	m.TopicPartition.Partition = r.Partition
	m.Key, m.Value = r.Key, r.Value
	m.Timestamp = time.UnixMilli(r.Timestamp)
	n.headers = n.headers[:0]
	for _, h := range r.Headers {
		n.headers = append(n.headers, ck.Header{Key: h.Key, Value: h.Value})
	}
	m.Headers = n.headers
	for {
		err := n.p.Produce(m, nil)
		if err == nil {
			return nil
		}
		if !isCode(err, ck.ErrQueueFull) {
			return n.refusal(r.TopicPartition(), err, new(error))
		}
		if err := n.backOff(ctx); err != nil {
			return err
		}
	}
}

// backOff waits until reports have made room in the queue.
func (n *sender) backOff(ctx context.Context) error {
	timer := time.NewTimer(queueRetry)
	defer timer.Stop()
	select {
	case <-n.room:
	case <-timer.C:
	case <-n.stop:
		return n.closedError()
	case <-ctx.Done():
		return n.wire.late("produce", "", fmt.Errorf("the queue of unacknowledged records is full: %w", ctx.Err()))
	}
	return nil
}

// check refuses what librdkafka would change silently, or die of.
func check(records []kafka.Record) error {
	for i := range records {
		r := &records[i]
		switch {
		case r.Topic == "" || len(r.Topic) > maxTopicName:
			return invalid("produce", "topic name of %d bytes: 1 to %d are possible", len(r.Topic), maxTopicName)
		case r.Partition < 0:
			return invalid("produce", "partition %d of topic %s: writers choose the partition", r.Partition, r.Topic)
		case r.Timestamp == 0:
			return invalid("produce", "record for %s with timestamp 0: librdkafka would write the present time instead (franz.Client can write it)", r.TopicPartition())
		case r.Timestamp > maxTimestamp || r.Timestamp < -maxTimestamp:
			return invalid("produce", "record for %s with timestamp %d ms: the confluent client can write up to %d", r.TopicPartition(), r.Timestamp, int64(maxTimestamp))
		}
		for _, h := range r.Headers {
			if strings.IndexByte(h.Key, 0) >= 0 {
				return invalid("produce", "record for %s with header key %q: librdkafka ends keys at the zero byte", r.TopicPartition(), h.Key)
			}
		}
	}
	return nil
}

// maxTimestamp is what nanoseconds in 64 bits can hold, the form timestamps pass the
// binding in.
const maxTimestamp = (1<<63 - 1) / 1_000_000
