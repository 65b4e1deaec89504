package franz

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// retriable makes a broker a requestor that repeats after a broken connection.
type retriable struct{ broker *kgo.Broker }

// Request implements [kmsg.Requestor].
func (r retriable) Request(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return r.broker.RetriableRequest(ctx, req)
}

// kadmError is a broker's error with the text it came with.
func kadmError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}

func (a *admin) ListOffsets(ctx context.Context, spec kafka.OffsetSpec, partitions ...kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	c, err := a.begin("list offsets of")
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	if spec < kafka.LastStable {
		return nil, invalid(c.op, "", fmt.Sprintf("%d is no offset spec", spec))
	}
	offsets, err := a.listOffsets(ctx, c, spec, partitions)
	if err != nil || spec < 0 {
		return offsets, err
	}
	var none []kafka.TopicPartition // no record at or after the time: the end
	for tp, offset := range offsets {
		if offset < 0 {
			none = append(none, tp)
		}
	}
	if len(none) == 0 {
		return offsets, nil
	}
	ends, err := a.listOffsets(ctx, c, kafka.HighWatermark, none)
	if err != nil {
		return nil, err
	}
	for tp, offset := range ends {
		offsets[tp] = offset
	}
	return offsets, nil
}

// listOffsets asks until every partition has answered.
func (a *admin) listOffsets(ctx context.Context, c call, spec kafka.OffsetSpec, partitions []kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	offsets := make(map[kafka.TopicPartition]int64, len(partitions))
	todo := partitions
	for {
		resp, err := patiently(ctx, a.link, func() (*kmsg.ListOffsetsResponse, error) { return listRequest(spec, todo).RequestWith(ctx, a.cl) })
		if err != nil {
			return nil, c.fail(a.missing(ctx, todo, err), err)
		}
		var later error
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
				err := kerr.ErrorForCode(p.ErrorCode)
				switch {
				case err == nil:
					offsets[tp] = p.Offset
				case again(err) && !errors.Is(err, kerr.UnknownTopicOrPartition):
					later = c.fail(tp.String(), err)
				default:
					return nil, c.fail(tp.String(), err)
				}
			}
		}
		var missing []kafka.TopicPartition
		for _, tp := range todo {
			if _, ok := offsets[tp]; !ok {
				missing = append(missing, tp)
			}
		}
		if todo = missing; len(todo) == 0 {
			return offsets, nil
		}
		if later == nil {
			later = c.fail(todo[0].String(), kerr.UnknownTopicOrPartition)
			return nil, later
		}
		if a.link.wait(ctx, pollPause) != nil {
			return nil, later
		}
	}
}

// missing names the partition that an error is about which came for a whole request.
func (a *admin) missing(ctx context.Context, partitions []kafka.TopicPartition, err error) string {
	if classOf(err) != kafka.ClassUnknownTopic {
		return ""
	}
	var topics []string
	for topic := range byTopic(partitions) {
		topics = append(topics, topic)
	}
	infos, err := loadTopics(ctx, a.link, a.cl, topics)
	if err != nil {
		return ""
	}
	for _, tp := range partitions {
		if infos[tp.Topic].has(tp.Partition) != nil {
			return tp.String()
		}
	}
	return ""
}

func listRequest(spec kafka.OffsetSpec, partitions []kafka.TopicPartition) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	timestamp := int64(spec)
	if spec == kafka.LastStable {
		timestamp, req.IsolationLevel = int64(kafka.HighWatermark), 1
	}
	for topic, ps := range byTopic(partitions) {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, partition := range ps {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = partition, timestamp
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// CommittedOffsets asks for just these partitions: others of the same topics may be in
// open transactions all the time.
func (a *admin) CommittedOffsets(ctx context.Context, group string, partitions ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	c, err := a.begin("read offsets of group")
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	notNow := func(err error) bool {
		return errors.Is(err, kerr.UnstableOffsetCommit) || again(err) && !errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	return persistently(ctx, c, notNow, func() (map[kafka.TopicPartition]kafka.CommittedOffset, string, error) {
		offsets, on, err := a.fetchOffsets(ctx, group, partitions)
		if errors.Is(err, kerr.GroupIDNotFound) {
			err = nil
		}
		return offsets, on, err
	})
}

// fetchOffsets asks once. on names what an error is about.
func (a *admin) fetchOffsets(ctx context.Context, group string, partitions []kafka.TopicPartition) (offsets map[kafka.TopicPartition]kafka.CommittedOffset, on string, err error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for topic, ps := range byTopic(partitions) {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, ps
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	resp, err := patiently(ctx, a.link, func() (*kmsg.OffsetFetchResponse, error) { return req.RequestWith(ctx, a.cl) })
	if err != nil {
		return nil, group, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, group, err
	}
	offsets = make(map[kafka.TopicPartition]kafka.CommittedOffset)
	for _, g := range resp.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
			return nil, group, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, group + " at " + tp.String(), err
				}
				if p.Offset < 0 {
					continue
				}
				o := kafka.CommittedOffset{TopicPartition: tp, Offset: p.Offset}
				if p.Metadata != nil {
					o.Metadata = *p.Metadata
				}
				offsets[tp] = o
			}
		}
	}
	return offsets, "", nil
}
