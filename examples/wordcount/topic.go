package main

import (
	"context"
	"fmt"

	"github.com/tidemark-streams/tidemark/kafka"
)

// partitions lists the partitions of a topic.
func (p *place) partitions(ctx context.Context, topic string) ([]kafka.TopicPartition, error) {
	found, err := p.admin.Topics(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", topic, err)
	}
	t, ok := found[topic]
	if !ok {
		return nil, fmt.Errorf("topic %s does not exist", topic)
	}
	var all []kafka.TopicPartition
	for n := range t.Partitions {
		all = append(all, kafka.TopicPartition{Topic: topic, Partition: n})
	}
	return all, nil
}

// readTopic gives visit every committed record of a topic from its start to its present end.
func (p *place) readTopic(ctx context.Context, topic string, visit func(*kafka.Record) error) (err error) {
	from, end, err := p.bounds(ctx, topic)
	if err != nil || len(from) == 0 {
		return err
	}
	consumer, err := p.client.NewConsumer(p.settings, kafka.ConsumerConfig{})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := closeClient(consumer); err == nil {
			err = cerr
		}
	}()
	if err := consumer.Assign(ctx, from); err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	var poll kafka.Poll
	for len(end) > 0 {
		if err := consumer.Poll(ctx, &poll); err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range poll.Partitions {
			f := &poll.Partitions[i]
			if f.Err != nil {
				return fmt.Errorf("read %v: %w", f.TopicPartition, f.Err)
			}
			for j := range f.Records {
				if err := visit(&f.Records[j]); err != nil {
					return fmt.Errorf("read %v@%d: %w", f.TopicPartition, f.Records[j].Offset, err)
				}
			}
			if last, ok := end[f.TopicPartition]; ok && f.Next >= last {
				delete(end, f.TopicPartition)
			}
		}
	}
	return nil
}

// bounds gives the first offset and the end of each partition that is not empty. The end is
// the high watermark: that of read_committed may be short right after a commit, whose marker
// comes after its answer.
func (p *place) bounds(ctx context.Context, topic string) (from, end map[kafka.TopicPartition]int64, err error) {
	all, err := p.partitions(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	if from, err = p.admin.ListOffsets(ctx, kafka.Earliest, all...); err != nil {
		return nil, nil, err
	}
	if end, err = p.admin.ListOffsets(ctx, kafka.HighWatermark, all...); err != nil {
		return nil, nil, err
	}
	for _, tp := range all {
		if from[tp] >= end[tp] {
			delete(from, tp)
			delete(end, tp)
		}
	}
	return from, end, nil
}
