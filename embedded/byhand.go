package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
)

// ErrTaken: another process was assigned the same partition by hand, and has taken it over.
var ErrTaken = errors.New("another process has taken the partition over")

var errSubscribed = errors.New("the consumer is subscribed: it is either subscribed or assigned by hand")

// Assign is for doors: these partitions are to be processed, without a subscription. It replaces the assignment before: what
// is not in it is committed and closed. Restores go on beside the loop, or, with Config.RestoreInCallback, are waited
// for.
func (h *Host) Assign(ctx context.Context, tps []kafka.TopicPartition) error {
	h.assigning.Lock()
	defer h.assigning.Unlock()
	if err := h.turnToHand(ctx); err != nil {
		return fmt.Errorf("assign partitions %v: %w", tps, err)
	}
	m, err := h.consumer.Member()
	if err != nil {
		return fmt.Errorf("assign partitions %v: %w", tps, err)
	}
	m.Standalone = true
	if err := h.checkTogether(tps); err != nil {
		return fmt.Errorf("assign partitions %v: %w", tps, err)
	}
	if err := h.letGo(tps); err != nil {
		return fmt.Errorf("assign partitions %v: %w", tps, err)
	}
	h.mu.Lock()
	if err := h.usable(); err != nil {
		h.mu.Unlock()
		return fmt.Errorf("assign partitions %v: %w", tps, err)
	}
	var begun []*batch
	for _, of := range h.fresh(tps) {
		begun = append(begun, h.takeOver(of, m))
	}
	h.mu.Unlock()
	if !h.cfg.RestoreInCallback {
		return nil
	}
	for _, b := range begun {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.Err()
}

// turnToHand makes sure that no group gives partitions, here or elsewhere: it would not know of these.
func (h *Host) turnToHand(ctx context.Context) error {
	if h.byHand.Load() {
		return nil
	}
	if h.consumer.Stop == nil {
		return errors.New("this consumer cannot be assigned by hand")
	}
	h.mu.Lock()
	subscribed, err := len(h.parts) > 0, h.usable()
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if subscribed {
		return errSubscribed
	}
	g, err := h.admin.DescribeGroup(ctx, h.consumer.Group)
	if err != nil {
		return fmt.Errorf("describe group %s: %w", h.consumer.Group, err)
	}
	if len(g.Members) > 0 {
		return fmt.Errorf("group %s has %d members that subscribe, one of them with client id %q: the group would give the same partitions to them; stop them, or use another group and App", h.consumer.Group, len(g.Members), g.Members[0].ClientID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.parts) > 0 { // meanwhile
		return errSubscribed
	}
	h.byHand.Store(true)
	return nil
}

// checkTogether finds a task that would have only some of its inputs.
func (h *Host) checkTogether(tps []kafka.TopicPartition) error {
	h.mu.Lock()
	inputs := h.inputs
	h.mu.Unlock()
	if inputs == nil {
		inputs = h.cfg.Topics
	}
	for _, tp := range tps {
		for _, topic := range inputs {
			other := kafka.TopicPartition{Topic: topic, Partition: tp.Partition}
			if slices.Contains(inputs, tp.Topic) && !slices.Contains(tps, other) {
				return fmt.Errorf("%v is not among them, and makes one task with %v: assign a partition of all inputs %v", other, tp, inputs)
			}
		}
	}
	return nil
}

// letGo commits and closes what is assigned and not among tps.
func (h *Host) letGo(tps []kafka.TopicPartition) error {
	var left []kafka.TopicPartition
	h.mu.Lock()
	for tp, p := range h.parts {
		if p.state != gone && !slices.Contains(tps, tp) {
			left = append(left, tp)
		}
	}
	h.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	err := h.Revoked(left)
	h.fetching.Lock()
	defer h.fetching.Unlock()
	return errors.Join(err, h.consumer.Stop(left))
}

// beginFetching has the consumer begin with partitions, but for those that were let go since.
func (h *Host) beginFetching(from map[kafka.TopicPartition]int64) error {
	if h.byHand.Load() {
		h.fetching.Lock()
		defer h.fetching.Unlock()
		h.mu.Lock()
		maps.DeleteFunc(from, func(tp kafka.TopicPartition, _ int64) bool { return h.parts[tp].state != here })
		h.mu.Unlock()
		if len(from) == 0 {
			return nil
		}
	}
	return h.consumer.Begin(from)
}

// fresh gives those partitions that are not assigned yet, by their number: each is one task, which is taken
// over for itself.
func (h *Host) fresh(tps []kafka.TopicPartition) map[int32][]kafka.TopicPartition {
	fresh := map[int32][]kafka.TopicPartition{}
	for _, tp := range tps {
		if p := h.parts[tp]; (p == nil || p.state == gone) && !slices.Contains(fresh[tp.Partition], tp) {
			fresh[tp.Partition] = append(fresh[tp.Partition], tp)
		}
	}
	return fresh
}
