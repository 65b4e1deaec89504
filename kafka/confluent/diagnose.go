//go:build cgo

package confluent

import (
	"context"
	"fmt"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// suspicion is what an error event says is wrong with some partition. The binding drops
// the partition that librdkafka attached to it, so it has to be found out.
type suspicion uint8

const (
	nothing suspicion = 0
	offsets suspicion = 1 << iota // a position is outside its log
	topics                        // a topic is unknown or not allowed
)

// trouble handles an error event.
func (c *consumer) trouble(e ck.Error) {
	if e.IsFatal() {
		c.die(&kafka.Error{Class: kafka.ClassFatal, Op: "poll", Err: e}, true)
		return
	}
	switch classOf(e) {
	case kafka.ClassOffsetOutOfRange:
		c.suspect |= offsets
	case kafka.ClassUnknownTopic:
		c.suspect |= topics
	case kafka.ClassUnauthorized:
		if e.Code() == ck.ErrTopicAuthorizationFailed {
			c.suspect |= topics
		} else {
			// The group is only a name here (see consumerConf): not being allowed to use it
			// changes nothing. Failed authentication is heard by whoever asks the brokers.
			c.wire.event(e)
		}
	default:
		c.wire.event(e) // "brokers are down" and the like: librdkafka goes on by itself
	}
}

// examine finds the partitions that an error event was about and reports them. What
// cannot be found out now is examined at the next poll.
func (c *consumer) examine(ctx context.Context, into *kafka.Poll) {
	what := c.suspect
	c.suspect = nothing
	if what&topics != 0 && !c.examineTopics(ctx, into) {
		c.suspect |= topics
	}
	if what&offsets != 0 && !c.examineOffsets(ctx, into) {
		c.suspect |= offsets
	}
	c.asked = c.suspect != nothing
}

// lookup is how many milliseconds one question to a broker may take.
func (c *consumer) lookup(ctx context.Context) int {
	wait := c.wait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)+grace)
	}
	return max(1, milliseconds(wait))
}

// examineOffsets compares positions with the ends of the logs. False: not all answered.
func (c *consumer) examineOffsets(ctx context.Context, into *kafka.Poll) bool {
	found := false
	for _, p := range c.parts {
		if p.paused || p.failed {
			continue
		}
		low, high, err := c.c.QueryWatermarkOffsets(p.Topic, p.Partition, c.lookup(ctx))
		if err != nil {
			return false
		}
		if low <= p.next && p.next <= high {
			continue
		}
		found = true
		c.report(p, into, outOfRange(p, low, high))
	}
	if !found {
		// The log has changed again in between. librdkafka has stopped fetching one of these
		// partitions and does not say which: all start again where they stand.
		c.restart()
	}
	return true
}

func outOfRange(p *part, low, high int64) *kafka.Error {
	return &kafka.Error{Class: kafka.ClassOffsetOutOfRange, Op: "fetch", On: p.String(),
		Err: fmt.Errorf("offset %d is not in the log, which reaches from %d to %d", p.next, low, high)}
}

// restart assigns everything that is fetched once more.
func (c *consumer) restart() {
	var list []ck.TopicPartition
	for tp, p := range c.parts {
		if !p.paused && !p.failed {
			list = append(list, at(tp, p.next))
		}
	}
	if len(list) == 0 {
		return
	}
	if err := c.c.IncrementalUnassign(list); err != nil {
		c.die(c.wire.fail("restart", "", err), false)
		return
	}
	if err := c.c.IncrementalAssign(list); err != nil {
		c.die(c.wire.fail("restart", "", err), false)
	}
}

// examineTopics asks for every assigned topic. False: not all answered.
func (c *consumer) examineTopics(ctx context.Context, into *kafka.Poll) bool {
	seen := map[string]*ck.TopicMetadata{}
	for _, p := range c.parts {
		if p.paused || p.failed {
			continue
		}
		md := seen[p.Topic]
		if md == nil {
			all, err := c.c.GetMetadata(&p.Topic, false, c.lookup(ctx))
			if err != nil {
				return false
			}
			t, ok := all.Topics[p.Topic]
			if !ok {
				t.Error = ck.NewError(ck.ErrUnknownTopicOrPart, "", false)
			}
			md = &t
			seen[p.Topic] = md
		}
		if err := topicError(md, p.Partition); err != nil {
			c.report(p, into, c.wire.fail("fetch", p.String(), err))
		}
	}
	return true
}

// topicError gives what is wrong with a partition of a topic, or nil.
func topicError(t *ck.TopicMetadata, partition int32) error {
	switch t.Error.Code() {
	case ck.ErrNoError:
		for _, p := range t.Partitions {
			if p.ID == partition {
				return nil
			}
		}
		return ck.NewError(ck.ErrUnknownPartition, "", false)
	case ck.ErrUnknownTopicOrPart, ck.ErrTopicAuthorizationFailed, ck.ErrTopicException:
		return t.Error
	}
	return nil // a passing state, such as no leader yet
}
