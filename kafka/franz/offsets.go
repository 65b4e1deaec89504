package franz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

const sendOffsetsOp = "send offsets of group"

// SendOffsets sends the requests by hand: franz-go's own commit works only for a client
// that is itself the member, and takes the generation of the moment.
func (t *transactional) SendOffsets(ctx context.Context, member kafka.Member, offsets []kafka.CommittedOffset) error {
	if err := t.allow(sendOffsetsOp, inside); err != nil {
		return err
	}
	c := t.link.call(sendOffsetsOp)
	if member.ID == "" && !member.Standalone {
		// a broker takes offsets without a member id from anybody, unfenced
		return c.class(kafka.ClassUnknownMember, member.Group, errors.New("the process is not a member of the group"))
	}
	if len(offsets) == 0 {
		return nil
	}
	if err := t.loadTopicIDs(ctx, c, offsets); err != nil {
		return err
	}
	if err := t.addOffsets(ctx, c, member.Group); err != nil {
		return err
	}
	return t.commitOffsets(ctx, c, member, offsets)
}

// loadTopicIDs learns the ids of topics that were not seen before. They are kept: a topic
// that is created anew is then refused by the broker, instead of getting the offsets of
// the old one.
func (t *transactional) loadTopicIDs(ctx context.Context, c call, offsets []kafka.CommittedOffset) error {
	var unknown []string
	for i, o := range offsets {
		if _, ok := t.topicIDs[o.Topic]; !ok && (i == 0 || offsets[i-1].Topic != o.Topic) {
			unknown = append(unknown, o.Topic)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	infos, err := loadTopics(ctx, t.link, t.cl, unknown)
	if err != nil {
		return c.fail("", err)
	}
	for _, topic := range unknown {
		if err := infos[topic].err; err != nil {
			return c.fail("of topic "+topic, err)
		}
		t.topicIDs[topic] = infos[topic].id
	}
	return nil
}

// addOffsets makes the group's offsets part of the transaction. A broker with transaction
// version 2 would do so by itself at the TxnOffsetCommit, but races with the markers of the
// transaction before where that one had the same epoch (see endRaw): it then refuses the
// offsets with INVALID_TXN_STATE. AddOffsetsToTxn is answered once those are written.
func (t *transactional) addOffsets(ctx context.Context, c call, group string) error {
	if t.groups[group] {
		return nil
	}
	id, epoch, err := t.current(ctx)
	if err != nil {
		return t.lose(c, group, err)
	}
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.cfg.ID, id, epoch, group
	t.offsets = true
	for {
		resp, err := req.RequestWith(ctx, t.cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			t.groups[group] = true
			return nil
		}
		if !again(err) {
			return t.lose(c, group, err)
		}
		if t.link.wait(ctx, concurrentBackoff) != nil {
			return t.lose(c, group, err)
		}
	}
}

// commitOffsets sends TxnOffsetCommit until it is answered with something else than "not
// now". Answers may be asked for again within the transaction; a request without answer
// may not (invariant 4).
func (t *transactional) commitOffsets(ctx context.Context, c call, member kafka.Member, offsets []kafka.CommittedOffset) error {
	id, epoch, err := t.current(ctx)
	if err != nil {
		return t.lose(c, member.Group, err)
	}
	req := t.offsetCommit(member, offsets)
	req.ProducerID, req.ProducerEpoch = id, epoch
	for pause := concurrentBackoff; ; pause = min(2*pause, 200*time.Millisecond) {
		on, err := t.tryOffsets(ctx, member.Group, req)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoAnswer):
			t.state = lost
			return c.class(kafka.ClassInDoubt, member.Group, err)
		case !again(err) || errors.Is(err, kerr.UnknownTopicOrPartition):
			return t.lose(c, on, err)
		}
		delete(t.routes, route{coordinatesGroup, member.Group})
		if werr := t.link.wait(ctx, pause); werr != nil {
			return t.lose(c, member.Group, fmt.Errorf("%w: %w", err, werr))
		}
	}
}

// lose classifies an error of SendOffsets, and what it leaves of the transaction.
func (t *transactional) lose(c call, on string, err error) error {
	e := c.fail(on, err)
	if kafka.IsClass(e, kafka.ClassFenced) {
		t.state = lost
	}
	return e
}

// offsetCommit makes the request, with exactly the member that was given.
func (t *transactional) offsetCommit(member kafka.Member, offsets []kafka.CommittedOffset) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.MemberID, req.Generation = t.cfg.ID, member.Group, member.ID, member.Generation
	if member.InstanceID != "" {
		req.InstanceID = &member.InstanceID
	}
	for _, o := range offsets {
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Topic != o.Topic {
			topic := kmsg.NewTxnOffsetCommitRequestTopic()
			topic.Topic, topic.TopicID = o.Topic, t.topicIDs[o.Topic]
			req.Topics = append(req.Topics, topic)
			n++
		}
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = o.Partition, o.Offset
		if o.Metadata != "" {
			metadata := o.Metadata
			p.Metadata = &metadata
		}
		req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, p)
	}
	return req
}

// tryOffsets sends the request once. on names what a refusal was about.
func (t *transactional) tryOffsets(ctx context.Context, group string, req *kmsg.TxnOffsetCommitRequest) (on string, err error) {
	t.offsets = true // also a refused request may have opened the transaction at its coordinator
	resp, err := t.once(ctx, route{coordinatesGroup, group}, t.offsetVersion(req))
	if err != nil {
		return group, err
	}
	names := make(map[[16]byte]string)
	for _, topic := range req.Topics {
		names[topic.TopicID] = topic.Topic
	}
	for _, topic := range resp.(*kmsg.TxnOffsetCommitResponse).Topics {
		name := topic.Topic
		if name == "" {
			name = names[topic.TopicID]
		}
		for _, p := range topic.Partitions {
			err := kerr.ErrorForCode(p.ErrorCode)
			switch {
			case err == nil:
				continue
			case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.TopicAuthorizationFailed),
				errors.Is(err, kerr.OffsetMetadataTooLarge):
				return group + " at " + kafka.TopicPartition{Topic: name, Partition: p.Partition}.String(), err
			}
			return group, err
		}
	}
	return "", nil
}

// offsetVersion caps the request's version. From version 5 on the broker adds the group to
// the transaction by itself, which it may do only where every transaction has an epoch of
// its own; version 6 names topics by id.
func (t *transactional) offsetVersion(req *kmsg.TxnOffsetCommitRequest) kmsg.Request {
	if !t.tv2 {
		return capped{req, 4}
	}
	for _, topic := range req.Topics {
		if topic.TopicID == ([16]byte{}) {
			return capped{req, 5}
		}
	}
	return req
}
