//go:build cgo

package confluent

import (
	"context"
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// partitionProblem is an error of one partition among several.
type partitionProblem struct {
	tp  kafka.TopicPartition
	err error
}

func (p *partitionProblem) Error() string { return p.tp.String() + ": " + p.err.Error() }
func (p *partitionProblem) Unwrap() error { return p.err }

// ListOffsets gives one offset for each partition.
func (d *admin) ListOffsets(ctx context.Context, spec kafka.OffsetSpec, partitions ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	const op = "list offsets"
	native, isolation := ck.OffsetSpec(spec), ck.IsolationLevelReadUncommitted
	switch {
	case spec == kafka.Earliest:
		native = ck.EarliestOffsetSpec
	case spec == kafka.HighWatermark:
		native = ck.LatestOffsetSpec
	case spec == kafka.LastStable:
		// The number -3 means the largest timestamp to librdkafka.
		native, isolation = ck.LatestOffsetSpec, ck.IsolationLevelReadCommitted
	case spec < 0:
		return nil, invalid(op, "unknown offset specification %d", spec)
	}
	found := make(map[kafka.TopicPartition]int64, len(partitions))
	if len(partitions) == 0 {
		return found, nil
	}
	err := d.ask(ctx, op, "", func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		clear(found)
		want := make(map[ck.TopicPartition]ck.OffsetSpec, len(partitions))
		for _, tp := range partitions {
			want[ck.TopicPartition{Topic: &tp.Topic, Partition: tp.Partition}] = native
		}
		r, err := d.a.ListOffsets(ctx, want, limit, ck.SetAdminIsolationLevel(isolation))
		if err != nil {
			return err
		}
		for p, info := range r.ResultInfos {
			tp := kafka.TopicPartition{Topic: *p.Topic, Partition: p.Partition}
			if err := codeOf(info.Error); err != nil {
				if isCode(err, ck.ErrFencedLeaderEpoch, ck.ErrUnknownLeaderEpoch) {
					// librdkafka keeps asking with the leader epoch that it has in its cache. This
					// question renews the cache; what it answers does not matter.
					_, _ = d.a.GetMetadata(&tp.Topic, false, milliseconds(d.limit(ctx)))
				}
				return &partitionProblem{tp, err}
			}
			found[tp] = int64(info.Offset)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.complete(ctx, spec, found, partitions)
}

// complete puts the end of the log where there is no record at or after a time, and
// refuses an answer that leaves a partition out.
func (d *admin) complete(ctx context.Context, spec kafka.OffsetSpec, found map[kafka.TopicPartition]int64, partitions []kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	var none []kafka.TopicPartition
	for _, tp := range partitions {
		offset, ok := found[tp]
		if !ok {
			return nil, &kafka.Error{Class: kafka.ClassUnknownTopic, Op: "list offsets", On: tp.String(), Err: fmt.Errorf("no answer for the partition")}
		}
		if offset < 0 {
			none = append(none, tp)
		}
	}
	if len(none) == 0 {
		return found, nil
	}
	if spec < 0 {
		return nil, &kafka.Error{Class: kafka.ClassFatal, Op: "list offsets", On: none[0].String(), Err: fmt.Errorf("the answer is the offset %d", found[none[0]])}
	}
	ends, err := d.ListOffsets(ctx, kafka.HighWatermark, none...)
	if err != nil {
		return nil, err
	}
	for tp, end := range ends {
		found[tp] = end
	}
	return found, nil
}

// CommittedOffsets reads a group's offsets with require stable. While a transaction holds
// offsets of these partitions the broker answers UNSTABLE_OFFSET_COMMIT, and the question
// is repeated until the context ends.
func (d *admin) CommittedOffsets(ctx context.Context, group string, partitions ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	const op = "read the offsets of group"
	if group == "" {
		return nil, invalid(op, "empty group id")
	}
	found := make(map[kafka.TopicPartition]kafka.CommittedOffset, len(partitions))
	if len(partitions) == 0 {
		return found, nil
	}
	list := make([]ck.TopicPartition, len(partitions))
	for i := range partitions {
		list[i] = at(partitions[i], 0)
	}
	err := d.readGroup(ctx, op, group, list, func(got []ck.TopicPartition) error {
		clear(found)
		for i := range got {
			if err := committed(&got[i], found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func committed(p *ck.TopicPartition, found map[kafka.TopicPartition]kafka.CommittedOffset) error {
	tp := kafka.TopicPartition{Topic: *p.Topic, Partition: p.Partition}
	if p.Error != nil {
		return &partitionProblem{tp, p.Error}
	}
	if p.Offset < 0 {
		return nil
	}
	o := kafka.CommittedOffset{TopicPartition: tp, Offset: int64(p.Offset)}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	found[tp] = o
	return nil
}

// DeleteRecords deletes what is before the given offsets.
func (d *admin) DeleteRecords(ctx context.Context, before map[kafka.TopicPartition]int64) error {
	if len(before) == 0 {
		return nil
	}
	return d.ask(ctx, "delete records", "", func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		list := make([]ck.TopicPartition, 0, len(before))
		for tp, offset := range before {
			list = append(list, at(tp, offset))
		}
		r, err := d.a.DeleteRecords(ctx, list, limit)
		if err != nil {
			return err
		}
		for _, p := range r.DeleteRecordsResults {
			if err := p.TopicPartition.Error; err != nil {
				return &partitionProblem{kafka.TopicPartition{Topic: *p.TopicPartition.Topic, Partition: p.TopicPartition.Partition}, err}
			}
		}
		return nil
	})
}
