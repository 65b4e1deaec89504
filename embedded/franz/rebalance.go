package franz

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// member is the client's present membership.
func (h *Host) member() (kafka.Member, error) {
	if h.said.byHand {
		return kafka.Member{Group: h.said.group, Generation: -1}, nil
	}
	id, generation := h.client.GroupMetadata()
	return kafka.Member{Group: h.said.group, InstanceID: h.said.instance, ID: id, Generation: generation}, nil
}

// assigned pauses what was assigned until its state is here (D2).
func (h *Host) assigned(ctx context.Context, cl *kgo.Client, added map[string][]int32) {
	if !h.ready(ctx) {
		return
	}
	cl.PauseFetchPartitions(added)
	h.tell("assigned", h.host.Assigned(partitions(added)))
	if f := h.said.assigned; f != nil {
		f(ctx, cl, added)
	}
}

func (h *Host) revoked(ctx context.Context, cl *kgo.Client, removed map[string][]int32) {
	if !h.ready(ctx) {
		return
	}
	if f := h.said.revoked; f != nil {
		f(ctx, cl, removed)
	}
	h.tell("revoked", h.host.Revoked(partitions(removed)))
}

func (h *Host) lost(ctx context.Context, cl *kgo.Client, removed map[string][]int32) {
	if !h.ready(ctx) {
		return
	}
	f := h.said.lost
	if f == nil {
		f = h.said.revoked // as the client itself does
	}
	if f != nil {
		f(ctx, cl, removed)
	}
	h.tell("lost", h.host.Lost(partitions(removed)))
}

// ready waits for Open, and tells whether there is a host.
func (h *Host) ready(ctx context.Context) bool {
	select {
	case <-h.opened:
		return h.host != nil
	case <-ctx.Done():
		return false
	}
}

func (h *Host) tell(what string, err error) {
	if err != nil {
		h.log.Error("rebalance: "+what, "error", err)
	}
}

// begin sets partitions to their positions and resumes them, or adds those that are assigned by hand.
func (h *Host) begin(from map[kafka.TopicPartition]int64) error {
	if h.said.byHand {
		add := map[string]map[int32]kgo.Offset{}
		for tp, offset := range from {
			if add[tp.Topic] == nil {
				add[tp.Topic] = map[int32]kgo.Offset{}
			}
			add[tp.Topic][tp.Partition] = kgo.NewOffset().At(offset)
		}
		h.client.AddConsumePartitions(add)
		return nil
	}
	if err := h.seek(from); err != nil {
		return err
	}
	h.client.ResumeFetchPartitions(byTopic(slices.Collect(maps.Keys(from))))
	return nil
}

// stop ends the fetching of partitions that were assigned by hand.
func (h *Host) stop(tps []kafka.TopicPartition) error {
	h.client.RemoveConsumePartitions(byTopic(tps))
	return nil
}

func byTopic(tps []kafka.TopicPartition) map[string][]int32 {
	m := map[string][]int32{}
	for _, tp := range tps {
		m[tp.Topic] = append(m[tp.Topic], tp.Partition)
	}
	return m
}

func (h *Host) seek(to map[kafka.TopicPartition]int64) error {
	set := map[string]map[int32]kgo.EpochOffset{}
	for tp, offset := range to {
		if set[tp.Topic] == nil {
			set[tp.Topic] = map[int32]kgo.EpochOffset{}
		}
		set[tp.Topic][tp.Partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	h.client.SetOffsets(set)
	return nil
}

func partitions(m map[string][]int32) (tps []kafka.TopicPartition) {
	for topic, list := range m {
		for _, p := range list {
			tps = append(tps, kafka.TopicPartition{Topic: topic, Partition: p})
		}
	}
	return tps
}
