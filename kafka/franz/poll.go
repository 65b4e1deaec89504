package franz

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Poll copies franz-go's record fields into the caller's reused memory; keys, values and
// header values stay where the fetch was decoded, which nothing writes to again.
func (c *consumer) Poll(ctx context.Context, into *kafka.Poll) error {
	into.Reset()
	op := c.link.call("poll")
	if c.closed {
		return op.fail("", kgo.ErrClientClosed)
	}
	c.reportFailures(into)
	for len(into.Partitions) == 0 && ctx.Err() == nil {
		fetches := c.cl.PollRecords(ctx, c.max)
		for i := range fetches {
			for j := range fetches[i].Topics {
				t := &fetches[i].Topics[j]
				for k := range t.Partitions {
					if err := c.take(op, into, t.Topic, &t.Partitions[k], i > 0); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// take adds one fetched partition to a poll. merge tells that the partition may be there
// already, because another broker led it a moment ago.
func (c *consumer) take(op call, into *kafka.Poll, topic string, p *kgo.FetchPartition, merge bool) error {
	if p.Err != nil {
		return c.takeError(op, into, topic, p)
	}
	if len(p.Records) == 0 {
		return nil
	}
	tp := kafka.TopicPartition{Topic: topic, Partition: p.Partition}
	if !c.assigned[tp] {
		return nil // its records are left to the garbage collector
	}
	f := entry(into, tp, merge)
	f.Records = slices.Grow(f.Records, len(p.Records))
	for _, r := range p.Records {
		f.Next = r.Offset + 1
		if r.Attrs.IsControl() {
			c.giveBack(r)
			continue
		}
		headers := into.Headers(len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = kafka.Header{Key: h.Key, Value: h.Value}
		}
		f.Records = append(f.Records, kafka.Record{
			Topic: topic, Partition: p.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(),
			Key: r.Key, Value: r.Value, Headers: headers,
		})
		c.giveBack(r)
	}
	return nil
}

func entry(into *kafka.Poll, tp kafka.TopicPartition, merge bool) *kafka.Fetched {
	if merge {
		for i := range into.Partitions {
			if into.Partitions[i].TopicPartition == tp {
				return &into.Partitions[i]
			}
		}
	}
	return into.Add(tp)
}

// takeError reports a partition's error once and stops fetching it: franz-go would ask
// again, and fail again, as fast as it can.
func (c *consumer) takeError(op call, into *kafka.Poll, topic string, p *kgo.FetchPartition) error {
	if topic == "" { // franz-go's way to say something about the client as a whole
		if errors.Is(p.Err, context.Canceled) || errors.Is(p.Err, context.DeadlineExceeded) {
			return nil
		}
		return op.fail("", p.Err)
	}
	if classOf(p.Err) == kafka.ClassRetriable {
		return nil // franz-go goes on by itself
	}
	for tp, fetching := range c.assigned {
		// a topic's error comes with partition -1 or 0 for all of its partitions
		if tp.Topic != topic || !fetching || tp.Partition != p.Partition && p.Partition >= 0 && !wholeTopic(p.Err) {
			continue
		}
		c.assigned[tp] = false
		c.cl.RemoveConsumePartitions(map[string][]int32{tp.Topic: {tp.Partition}})
		f := entry(into, tp, true)
		f.Err = op.fail(tp.String(), p.Err)
	}
	return nil
}

// wholeTopic tells whether an error is about a topic, whatever partition it came with.
func wholeTopic(err error) bool { return classOf(err) == kafka.ClassUnauthorized }

func (c *consumer) reportFailures(into *kafka.Poll) {
	for _, f := range c.failures {
		if f.err != nil {
			into.Add(f.tp).Err = f.err
		}
	}
	clear(c.failures)
	c.failures = c.failures[:0]
}
