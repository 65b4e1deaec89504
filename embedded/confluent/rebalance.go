//go:build cgo

package confluent

import (
	"errors"
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
)

// Rebalance is the callback for SubscribeTopics. One of your own that does more calls it, and
// leaves Assign and Unassign to it. It works with every assignor of the client and with group.protocol=consumer.
func (h *Host) Rebalance(c *ck.Consumer, event ck.Event) error {
	if c != h.consumer {
		return errors.New("rebalance: this is the callback of another consumer: subscribe the host's own, Consumer()")
	}
	h.mu.Lock()
	closing := h.closing
	h.answered = true
	h.mu.Unlock()
	if closing {
		confluent.Dismiss(c)
		return nil
	}
	var err error
	switch e := event.(type) {
	case ck.AssignedPartitions:
		err = h.assigned(e.Partitions)
	case ck.RevokedPartitions:
		err = h.revoked(e.Partitions)
	}
	if errors.Is(err, embedded.ErrClosed) {
		return nil
	}
	if err != nil { // the client does not look at it
		h.log.Error("rebalance", "event", event.String(), "error", err)
	}
	return err
}

// assigned takes up an assignment. Where the restore is waited for, begin has assigned the partitions when it returns.
// Else nothing is assigned yet, so that the client's own default does not (D2), and begin follows.
func (h *Host) assigned(list []ck.TopicPartition) error {
	h.mu.Lock()
	h.cooperative, h.begun = h.consumer.GetRebalanceProtocol() == "COOPERATIVE", false
	if !h.cooperative {
		clear(h.fetched)
	}
	h.mu.Unlock()
	var err error
	if h.waits {
		err = h.host.Assigned(partitions(list))
	}
	if nerr := h.assignNone(); nerr != nil {
		return errors.Join(err, fmt.Errorf("take up the assignment: %w", nerr))
	}
	if !h.waits {
		err = h.host.Assigned(partitions(list))
	}
	return err
}

// assignNone tells the client that the assignment was looked at, unless begin has.
func (h *Host) assignNone() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun {
		return nil
	}
	if h.cooperative {
		return h.consumer.IncrementalAssign(nil)
	}
	return h.consumer.Assign(nil)
}

func (h *Host) revoked(list []ck.TopicPartition) error {
	tps := partitions(list)
	var err error
	if h.consumer.AssignmentLost() {
		err = h.host.Lost(tps)
	} else {
		err = h.host.Revoked(tps)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.cooperative {
		clear(h.fetched)
		return errors.Join(err, h.consumer.Unassign())
	}
	return errors.Join(err, h.consumer.IncrementalUnassign(h.unfetch(tps)))
}

// unfetch forgets partitions, and gives those that were begun: others are not the consumer's to unassign.
func (h *Host) unfetch(tps []kafka.TopicPartition) (fetched []ck.TopicPartition) {
	for _, tp := range tps {
		if h.fetched[tp] {
			fetched = append(fetched, of(tp, 0))
			delete(h.fetched, tp)
		}
	}
	return fetched
}

// stop ends the fetching of partitions that were assigned by hand.
func (h *Host) stop(tps []kafka.TopicPartition) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil
	}
	if err := h.consumer.IncrementalUnassign(h.unfetch(tps)); err != nil {
		return fmt.Errorf("unassign partitions: %w", err)
	}
	return nil
}

// begin assigns partitions with their offsets. The eager protocol knows only the whole assignment: partitions that
// are fetched already begin again where they are.
func (h *Host) begin(from map[kafka.TopicPartition]int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return embedded.ErrClosed
	}
	var list []ck.TopicPartition
	for tp, offset := range from {
		list = append(list, of(tp, offset))
	}
	if !h.cooperative {
		positions := h.host.Positions()
		for tp := range h.fetched {
			if offset, ok := positions[tp]; ok {
				list = append(list, of(tp, offset))
			}
		}
	}
	var err error
	if h.cooperative {
		err = h.consumer.IncrementalAssign(list)
	} else {
		err = h.consumer.Assign(list)
	}
	if err != nil {
		return fmt.Errorf("assign restored partitions: %w", err)
	}
	h.begun = true
	for tp := range from {
		h.fetched[tp] = true
	}
	return nil
}

// drain answers the rebalances that the client has told and nobody has looked at. One that is left for the consumer's Close is
// often of no meaning any more, which makes D4 likely. They come before messages, of which at most one is dropped here.
func (h *Host) drain() {
	for again := true; again; {
		h.mu.Lock()
		h.answered = false
		h.mu.Unlock()
		h.consumer.Poll(0)
		h.mu.Lock()
		again = h.answered
		h.mu.Unlock()
	}
}

// seek sets partitions back. The consumer may not have begun with one yet: then it is assigned again.
func (h *Host) seek(to map[kafka.TopicPartition]int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || h.consumer.IsClosed() {
		return nil
	}
	var list []ck.TopicPartition
	for tp, offset := range to {
		if h.fetched[tp] {
			list = append(list, of(tp, offset))
		}
	}
	if len(list) == 0 {
		return nil
	}
	if !h.cooperative && len(list) == len(h.fetched) {
		return wrap(h.consumer.Assign(list))
	}
	done, err := h.consumer.SeekPartitions(list)
	if err != nil {
		return wrap(err)
	}
	var again []ck.TopicPartition
	for _, tp := range done {
		if tp.Error != nil {
			again = append(again, of(kafka.TopicPartition{Topic: *tp.Topic, Partition: tp.Partition}, to[kafka.TopicPartition{Topic: *tp.Topic, Partition: tp.Partition}]))
		}
	}
	if len(again) == 0 {
		return nil
	}
	if !h.cooperative {
		h.log.Warn("the consumer could not be set back; it will be when it gives the next message", "partitions", fmt.Sprint(again))
		return nil
	}
	if err := h.consumer.IncrementalUnassign(again); err != nil {
		return wrap(err)
	}
	return wrap(h.consumer.IncrementalAssign(again))
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("set the consumer back: %w", err)
	}
	return nil
}

func partitions(list []ck.TopicPartition) (tps []kafka.TopicPartition) {
	for _, tp := range list {
		tps = append(tps, kafka.TopicPartition{Topic: *tp.Topic, Partition: tp.Partition})
	}
	return tps
}

func of(tp kafka.TopicPartition, offset int64) ck.TopicPartition {
	return ck.TopicPartition{Topic: &tp.Topic, Partition: tp.Partition, Offset: ck.Offset(offset)}
}
