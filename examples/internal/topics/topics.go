package topics

import (
	"context"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

// Create makes topics where they are missing, and returns when the brokers know them.
func Create(ctx context.Context, brokers []string, partitions int32, names ...string) error {
	admin, err := franz.Client{}.NewAdmin(kafka.Settings{Brokers: brokers})
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	for _, name := range names {
		err := admin.CreateTopics(ctx, kafka.NewTopic{Name: name, Partitions: partitions, Replication: -1})
		if err != nil && !kafka.IsClass(err, kafka.ClassTopicExists) {
			return err
		}
	}
	return nil
}

// Read gives what is in topics now, as a reader of committed records sees it; in order within a partition.
func Read(ctx context.Context, brokers []string, names ...string) (records []kafka.Record, err error) {
	settings := kafka.Settings{Brokers: brokers}
	admin, err := franz.Client{}.NewAdmin(settings)
	if err != nil {
		return nil, err
	}
	defer admin.Close(ctx)
	consumer, err := franz.Client{}.NewConsumer(settings, kafka.ConsumerConfig{})
	if err != nil {
		return nil, err
	}
	defer consumer.Close(ctx)
	from, left, err := bounds(ctx, admin, names)
	if err != nil {
		return nil, err
	}
	if err := consumer.Assign(ctx, from); err != nil {
		return nil, err
	}
	for poll := (kafka.Poll{}); len(left) > 0 && ctx.Err() == nil; {
		if err := consumer.Poll(ctx, &poll); err != nil {
			return nil, err
		}
		for _, f := range poll.Partitions {
			if f.Err != nil {
				return nil, f.Err
			}
			records = append(records, f.Records...)
			if f.Next >= left[f.TopicPartition] {
				delete(left, f.TopicPartition)
			}
		}
	}
	return records, ctx.Err()
}

// bounds gives where the partitions of topics begin, and where those end that hold anything.
func bounds(ctx context.Context, admin kafka.Admin, names []string) (from, ends map[kafka.TopicPartition]int64, err error) {
	topics, err := admin.Topics(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	var tps []kafka.TopicPartition
	for name, topic := range topics {
		for p := range topic.Partitions {
			tps = append(tps, kafka.TopicPartition{Topic: name, Partition: p})
		}
	}
	if from, err = admin.ListOffsets(ctx, kafka.Earliest, tps...); err != nil {
		return nil, nil, err
	}
	if ends, err = admin.ListOffsets(ctx, kafka.HighWatermark, tps...); err != nil {
		return nil, nil, err
	}
	for tp, end := range ends {
		if end <= from[tp] {
			delete(ends, tp)
		}
	}
	return from, ends, nil
}
