package franz

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// consumer reads partitions assigned by hand. Its fields belong to the goroutine that
// owns it.
type consumer struct {
	cl       *kgo.Client
	link     *link
	max      int
	recycles bool                          // fetched records are given back
	assigned map[kafka.TopicPartition]bool // false: an error was reported, nothing is fetched
	failures []failure                     // found by Assign, reported by the next Poll
	closed   bool
}

type failure struct {
	tp  kafka.TopicPartition
	err error
}

// NewConsumer makes a consumer without partitions.
func (c Client) NewConsumer(s kafka.Settings, cfg kafka.ConsumerConfig) (kafka.Consumer, error) {
	isolation := kgo.ReadCommitted()
	if cfg.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	bytes := int32(32 << 20)
	if s.FetchMaxBytes > 0 {
		bytes = int32(min(s.FetchMaxBytes, 1<<29))
	}
	cl, l, err := c.dial(s, "consumer",
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // markers move the position
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(bytes),
		kgo.FetchMaxPartitionBytes(min(bytes, 4<<20)),
		kgo.BrokerMaxReadBytes(max(100<<20, bytes+bytes/4)), // a fetch may be larger than asked for by its first batch
		// An idle fetch that hangs at the broker keeps partitions assigned since out of the
		// next one.
		kgo.FetchMaxWait(250*time.Millisecond),
		kgo.WithPools(&recordPool{}),
	)
	if err != nil {
		return nil, err
	}
	n := cfg.MaxPollRecords
	if n <= 0 {
		n = 10_000
	}
	return &consumer{cl: cl, link: l, max: n, recycles: recycles(cl), assigned: make(map[kafka.TopicPartition]bool)}, nil
}

// Assign asks for the topics' partitions first: franz-go waits silently for a topic or
// partition that does not exist.
func (c *consumer) Assign(ctx context.Context, from map[kafka.TopicPartition]int64) error {
	op := c.link.call("assign")
	if c.closed {
		return op.fail("", kgo.ErrClientClosed)
	}
	if len(from) == 0 {
		return nil
	}
	for tp, offset := range from {
		if offset < 0 {
			return invalid("assign", tp.String(), fmt.Sprintf("%d is not an offset", offset))
		}
	}
	topics, err := loadTopics(ctx, c.link, c.cl, topicsOf(from))
	if err != nil {
		return op.fail("", err)
	}
	var again []kafka.TopicPartition
	for tp := range from {
		if _, ok := c.assigned[tp]; ok {
			again = append(again, tp)
		}
	}
	if err := c.Unassign(again...); err != nil {
		return err
	}
	add := make(map[string]map[int32]kgo.Offset)
	for tp, offset := range from {
		if err := topics[tp.Topic].has(tp.Partition); err != nil {
			c.assigned[tp] = false
			c.failures = append(c.failures, failure{tp, op.fail(tp.String(), err)})
			continue
		}
		c.assigned[tp] = true
		if add[tp.Topic] == nil {
			add[tp.Topic] = make(map[int32]kgo.Offset)
		}
		add[tp.Topic][tp.Partition] = kgo.NewOffset().At(offset)
	}
	c.cl.AddConsumePartitions(add)
	return nil
}

// Unassign also takes back a pause: franz-go would keep it for the next assignment.
func (c *consumer) Unassign(partitions ...kafka.TopicPartition) error {
	if len(partitions) == 0 || c.closed {
		return nil
	}
	by := byTopic(partitions)
	c.cl.RemoveConsumePartitions(by)
	c.cl.ResumeFetchPartitions(byTopic(partitions))
	for _, tp := range partitions {
		delete(c.assigned, tp)
		for i := range c.failures {
			if c.failures[i].tp == tp {
				c.failures[i].err = nil
			}
		}
	}
	return nil
}

func (c *consumer) Pause(partitions ...kafka.TopicPartition) {
	if len(partitions) > 0 && !c.closed {
		c.cl.PauseFetchPartitions(byTopic(partitions))
	}
}

func (c *consumer) Resume(partitions ...kafka.TopicPartition) {
	if len(partitions) > 0 && !c.closed {
		c.cl.ResumeFetchPartitions(byTopic(partitions))
	}
}

func (c *consumer) Close(ctx context.Context) error {
	if c.closed {
		return nil
	}
	c.closed = true
	return closeClient(ctx, c.cl, c.link, "close consumer")
}

func byTopic(partitions []kafka.TopicPartition) map[string][]int32 {
	by := make(map[string][]int32)
	for _, tp := range partitions {
		by[tp.Topic] = append(by[tp.Topic], tp.Partition)
	}
	return by
}

func topicsOf(from map[kafka.TopicPartition]int64) []string {
	seen := make(map[string]bool)
	var topics []string
	for tp := range from {
		if !seen[tp.Topic] {
			seen[tp.Topic] = true
			topics = append(topics, tp.Topic)
		}
	}
	return topics
}

// topicInfo is what a broker's metadata says about a topic.
type topicInfo struct {
	id         [16]byte
	partitions map[int32]bool // true: it has a leader
	err        error
}

// has gives the reason why a partition cannot be used.
func (t topicInfo) has(partition int32) error {
	if t.err != nil {
		return t.err
	}
	if _, ok := t.partitions[partition]; !ok {
		return kerr.UnknownTopicOrPartition
	}
	return nil
}

// loadTopics asks any broker about topics, never creating one.
func loadTopics(ctx context.Context, l *link, r kmsg.Requestor, topics []string) (map[string]topicInfo, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := patiently(ctx, l, func() (*kmsg.MetadataResponse, error) { return req.RequestWith(ctx, r) })
	if err != nil {
		return nil, err
	}
	infos := make(map[string]topicInfo, len(topics))
	for _, topic := range topics {
		infos[topic] = topicInfo{err: kerr.UnknownTopicOrPartition}
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		info := topicInfo{id: t.TopicID, err: kerr.ErrorForCode(t.ErrorCode), partitions: make(map[int32]bool, len(t.Partitions))}
		for _, p := range t.Partitions {
			info.partitions[p.Partition] = p.Leader >= 0 && p.ErrorCode == 0
		}
		infos[*t.Topic] = info
	}
	return infos, nil
}
