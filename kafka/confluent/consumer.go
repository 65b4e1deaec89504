//go:build cgo

package confluent

import (
	"context"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	defaultMaxPollRecords = 10_000
	// pollSlice is how long Poll stays inside librdkafka before it looks at its context.
	// A record ends the wait at once.
	pollSlice = 20 * time.Millisecond
)

// consumer reads partitions assigned by hand. It has no goroutine and no lock: its caller
// is the only one inside the librdkafka consumer.
type consumer struct {
	c    *ck.Consumer
	wire *wire
	max  int
	wait time.Duration // bound of one look-up after an error

	parts   map[kafka.TopicPartition]*part
	last    *part  // of the record before: the next is mostly of the same partition
	poll    uint64 // number of the present poll
	suspect suspicion
	asked   bool  // about the suspicion, without an answer so far
	dead    error // a fatal error, or closed
	fatal   bool
}

// part is one assigned partition.
type part struct {
	kafka.TopicPartition
	next   int64  // the position: see K1
	poll   uint64 // the poll that entry belongs to
	entry  int    // index in Poll.Partitions
	paused bool   // kept here, not in librdkafka
	failed bool   // its error was reported; it waits to be unassigned
}

// NewConsumer makes a consumer that belongs to no group.
func (c Client) NewConsumer(s kafka.Settings, cfg kafka.ConsumerConfig) (kafka.Consumer, error) {
	const op = "make the consumer"
	s = withDefaults(s)
	conf, err := c.consumerConf(s, cfg)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	w := newWire(s, "consumer", conf)
	k, err := ck.NewConsumer(&conf)
	if err != nil {
		w.close()
		return nil, invalid(op, "%w", err)
	}
	if cfg.MaxPollRecords == 0 {
		cfg.MaxPollRecords = defaultMaxPollRecords
	}
	return &consumer{c: k, wire: w, max: cfg.MaxPollRecords, wait: s.RequestTimeout,
		parts: map[kafka.TopicPartition]*part{}}, nil
}

// Assign adds partitions. The offsets go into the assign itself: a seek would have to wait
// until the partition is active, and a later assign could be overtaken by the answer to
// an earlier one's offset request.
func (c *consumer) Assign(ctx context.Context, from map[kafka.TopicPartition]int64) error {
	const op = "assign"
	if c.dead != nil {
		return c.dead
	}
	if ctx.Err() != nil {
		return &kafka.Error{Class: kafka.ClassTimeout, Op: op, Err: ctx.Err()}
	}
	list := make([]ck.TopicPartition, 0, len(from))
	for tp, offset := range from {
		switch {
		case tp.Topic == "" || len(tp.Topic) > maxTopicName || tp.Partition < 0:
			return invalid(op, "there can be no partition %q", tp.String())
		case offset < 0:
			return invalid(op, "offset %d of %s", offset, tp)
		case c.parts[tp] != nil:
			return invalid(op, "%s is assigned already", tp)
		}
		list = append(list, at(tp, offset))
	}
	if len(list) == 0 {
		return nil
	}
	if err := c.c.IncrementalAssign(list); err != nil {
		return c.wire.fail(op, "", err)
	}
	for tp, offset := range from {
		c.parts[tp] = &part{TopicPartition: tp, next: offset}
	}
	return nil
}

func at(tp kafka.TopicPartition, offset int64) ck.TopicPartition {
	return ck.TopicPartition{Topic: &tp.Topic, Partition: tp.Partition, Offset: ck.Offset(offset)}
}

// Unassign removes partitions. What librdkafka has buffered of them is outdated by that,
// and dropped by it.
func (c *consumer) Unassign(partitions ...kafka.TopicPartition) error {
	if c.dead != nil {
		return c.dead
	}
	for _, tp := range partitions {
		if c.parts[tp] == nil {
			return invalid("unassign", "%s is not assigned", tp)
		}
	}
	var list []ck.TopicPartition
	for _, tp := range partitions {
		p := c.parts[tp]
		if p == nil {
			continue // named twice
		}
		if !p.paused {
			list = append(list, at(tp, 0))
		}
		delete(c.parts, tp)
	}
	c.last = nil
	if len(list) == 0 {
		return nil
	}
	if err := c.c.IncrementalUnassign(list); err != nil {
		return c.wire.fail("unassign", "", err)
	}
	return nil
}

// Pause takes partitions out of the library's assignment and keeps their positions here.
// librdkafka's own pause drops its buffer just the same, but loses the start offset of a
// partition that was paused before its first fetch, keeps partitions paused across an
// assignment, and may never resume them.
func (c *consumer) Pause(partitions ...kafka.TopicPartition) {
	c.switchTo(true, partitions)
}

// Resume assigns partitions again at their positions.
func (c *consumer) Resume(partitions ...kafka.TopicPartition) {
	c.switchTo(false, partitions)
}

func (c *consumer) switchTo(paused bool, partitions []kafka.TopicPartition) {
	if c.dead != nil {
		return
	}
	var list []ck.TopicPartition
	for _, tp := range partitions {
		if p := c.parts[tp]; p != nil && p.paused != paused && !p.failed {
			p.paused = paused
			list = append(list, at(tp, p.next))
		}
	}
	if len(list) == 0 {
		return
	}
	change := c.c.IncrementalAssign
	if paused {
		change = c.c.IncrementalUnassign
	}
	if err := change(list); err != nil {
		c.die(c.wire.fail("pause or resume", "", err), false)
	}
}

// die makes every further call report err.
func (c *consumer) die(err error, fatal bool) {
	if c.dead == nil {
		c.dead, c.fatal = err, fatal
	}
}

// Poll fills into with what librdkafka has, up to the bound.
func (c *consumer) Poll(ctx context.Context, into *kafka.Poll) error {
	into.Reset()
	if c.dead != nil {
		return c.dead
	}
	c.poll++
	records := 0
	for records < c.max {
		got := len(into.Partitions) > 0
		ev := c.c.Poll(c.timeout(ctx, got))
		switch e := ev.(type) {
		case *ck.Message:
			records += c.take(e, into)
		case ck.PartitionEOF:
			c.end(e, into)
		case ck.Error:
			c.trouble(e)
		case nil: // the time is over, or librdkafka handled something of its own
			if c.suspect != nothing {
				c.examine(ctx, into)
			}
			if len(into.Partitions) > 0 || ctx.Err() != nil || c.dead != nil {
				return c.dead
			}
		}
	}
	return c.dead
}

// timeout is how many milliseconds one call may wait: not at all once there is something
// to hand over.
func (c *consumer) timeout(ctx context.Context, got bool) int {
	if got || c.suspect != nothing && !c.asked || ctx.Err() != nil {
		return 0
	}
	wait := pollSlice
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	return max(0, int((wait+time.Millisecond-1)/time.Millisecond))
}

func (c *consumer) part(topic string, partition int32) *part {
	if p := c.last; p != nil && p.Partition == partition && p.Topic == topic {
		return p
	}
	p := c.parts[kafka.TopicPartition{Topic: topic, Partition: partition}]
	if p != nil {
		c.last = p
	}
	return p
}

// entryOf gives the partition's entry in the present poll.
func (c *consumer) entryOf(p *part, into *kafka.Poll) *kafka.Fetched {
	if p.poll == c.poll {
		return &into.Partitions[p.entry]
	}
	p.poll, p.entry = c.poll, len(into.Partitions)
	f := into.Add(p.TopicPartition)
	f.Next = p.next
	return f
}

// take adds a record and tells how many it added.
func (c *consumer) take(m *ck.Message, into *kafka.Poll) int {
	tp := &m.TopicPartition
	p := c.part(*tp.Topic, tp.Partition)
	if p == nil || p.paused || p.failed {
		return 0
	}
	if tp.Error != nil {
		c.report(p, into, c.wire.fail("fetch", p.String(), tp.Error))
		return 0
	}
	offset := int64(tp.Offset)
	if offset < p.next {
		return 0 // of an assignment before this one
	}
	f := c.entryOf(p, into)
	r := kafka.Record{Topic: p.Topic, Partition: p.Partition, Offset: offset, Timestamp: -1,
		Key: m.Key, Value: m.Value}
	if !m.Timestamp.IsZero() {
		r.Timestamp = m.Timestamp.UnixMilli()
	}
	if len(m.Headers) > 0 {
		r.Headers = into.Headers(len(m.Headers))
		for i, h := range m.Headers {
			r.Headers[i] = kafka.Header{Key: h.Key, Value: h.Value}
		}
	}
	f.Records = append(f.Records, r)
	p.next = offset + 1
	f.Next = p.next
	return 1
}

// end moves the position to the end of the partition. Offsets of transaction markers and
// aborted records show up nowhere else.
func (c *consumer) end(e ck.PartitionEOF, into *kafka.Poll) {
	c.wire.answer()
	p := c.part(*e.Topic, e.Partition)
	if p == nil || p.paused || p.failed || int64(e.Offset) <= p.next {
		return
	}
	p.next = int64(e.Offset)
	c.entryOf(p, into).Next = p.next
}

// report puts a partition's error into the poll, once.
func (c *consumer) report(p *part, into *kafka.Poll, err error) {
	p.failed = true
	c.entryOf(p, into).Err = err
}

// Close ends the consumer. Nothing waits for a broker in it; with a fatal error the
// library's Close would not return, so the consumer is left behind instead (C2).
func (c *consumer) Close(ctx context.Context) error {
	const op = "close the consumer"
	if c.c == nil {
		return nil
	}
	k := c.c
	c.c = nil
	fatal := c.fatal
	c.dead, c.parts, c.last = &kafka.Error{Class: kafka.ClassClosed, Op: "use the consumer"}, nil, nil
	if fatal {
		c.wire.leave(k.String())
		return nil
	}
	closed, err := endConsumer(ctx, op, k, c.wire.close)
	if closed && err != nil {
		return c.wire.fail(op, "", err)
	}
	return err
}
