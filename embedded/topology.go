package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// node is the one processor of the topology: it calls the function of the Process under way.
type node struct {
	host *Host
	task Task
}

func (n *node) Init(ctx processor.Context[[]byte, []byte]) error {
	n.task = Task{host: n.host, ctx: ctx}
	if n.host.cfg.Debug {
		n.task.strict = &strict{}
	}
	return nil
}

func (n *node) Process(_ processor.Context[[]byte, []byte], r processor.Record[[]byte, []byte]) error {
	t := &n.task
	t.at, t.now = r.Timestamp, true
	defer func() { t.now = false }()
	if t.strict != nil {
		t.strict.begin()
		defer t.strict.end()
	}
	return n.host.call(t)
}

func (h *Host) topology(topics []string) (*processor.Topology, error) {
	t := processor.NewTopology()
	processor.AddSource(t, "input", serde.Bytes, serde.Bytes, topics...)
	processor.AddProcessor[[]byte, []byte, []byte, []byte](t, "process", func() *node { return &node{host: h} }, []string{"input"}, h.cfg.Stores...)
	return t, t.Build()
}

// found is what the first assignment shows.
type found struct {
	topology *processor.Topology
	topics   map[string]kafka.Topic
	inputs   []string
}

// prepare finds and makes the topics at the first assignment, when the inputs are known.
func (h *Host) prepare(ctx context.Context, assigned []kafka.TopicPartition) error {
	h.preparing.Lock()
	defer h.preparing.Unlock()
	topics := h.cfg.Topics
	if h.found != nil {
		topics = h.found.inputs
	}
	if len(topics) == 0 {
		topics = []string{assigned[0].Topic}
	}
	for _, tp := range assigned {
		if !slices.Contains(topics, tp.Topic) {
			return fmt.Errorf("partition %v was assigned, but the input topics are %v: name all that the consumer subscribes to in Config.Topics", tp, topics)
		}
	}
	if h.found != nil {
		return nil
	}
	topology, err := h.topology(topics)
	if err != nil {
		return err
	}
	all, partitions, err := h.findTopics(ctx, topics)
	if err != nil {
		return err
	}
	h.found = &found{topology, all, topics}
	h.mu.Lock()
	h.inputs, h.partitions = topics, partitions
	h.mu.Unlock()
	return nil
}

// member gives nobody when the client cannot tell: then no commit goes out.
func (h *Host) member() kafka.Member {
	m, err := h.consumer.Member()
	if err != nil {
		return kafka.Member{Group: h.consumer.Group}
	}
	m.Standalone = h.byHand.Load()
	return m
}

// call runs the function of the Process under way.
func (h *Host) call(t *Task) error { return h.function(t) }
