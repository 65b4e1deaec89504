package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// findTopics describes inputs and outputs, and creates or verifies the changelogs, which have as many
// partitions as the inputs.
func (h *Host) findTopics(ctx context.Context, inputs []string) (map[string]kafka.Topic, int32, error) {
	users := slices.Concat(inputs, h.cfg.Outputs)
	all, err := h.admin.Topics(ctx, users...)
	if err != nil {
		return nil, 0, fmt.Errorf("describe topics: %w", err)
	}
	for _, name := range users {
		if _, ok := all[name]; !ok {
			return nil, 0, &kafka.Error{Class: kafka.ClassRetriable, Op: "describe topic", On: name, Err: fmt.Errorf("topic %s does not exist, or not yet", name)}
		}
	}
	first := all[inputs[0]]
	for _, name := range inputs {
		if n := all[name].Partitions; n != first.Partitions {
			return nil, 0, fmt.Errorf("topic %s has %d partitions, %s has %d: inputs that share state need the same number", first.Name, first.Partitions, name, n)
		}
	}
	var changelogs []kafka.NewTopic
	for _, s := range h.cfg.Stores {
		if s.Definition().Unlogged {
			continue
		}
		changelogs = append(changelogs, h.changelog(s.Definition(), first.Partitions))
	}
	for _, want := range changelogs {
		t, err := h.ensure(ctx, want)
		if err != nil {
			return nil, 0, err
		}
		all[t.Name] = t
	}
	return all, first.Partitions, nil
}

func (h *Host) changelog(def processor.Definition, partitions int32) kafka.NewTopic {
	replication := int16(h.cfg.Replication)
	if replication == 0 {
		replication = -1
	}
	return kafka.NewTopic{Name: task.ChangelogTopic(h.cfg.App, def.Name), Partitions: partitions, Replication: replication, Configs: task.ChangelogConfigs(def)}
}

// ensure creates a changelog, or verifies the one that is there.
func (h *Host) ensure(ctx context.Context, want kafka.NewTopic) (kafka.Topic, error) {
	have, err := h.admin.Topics(ctx, want.Name)
	if err != nil {
		return kafka.Topic{}, fmt.Errorf("describe changelog: %w", err)
	}
	if t, ok := have[want.Name]; ok {
		return t, h.verify(ctx, t, want)
	}
	h.log.Info("create changelog", "topic", want.Name, "partitions", want.Partitions)
	if err := h.admin.CreateTopics(ctx, want); err != nil && !kafka.IsClass(err, kafka.ClassTopicExists) {
		return kafka.Topic{}, fmt.Errorf("create changelog: %w", err)
	}
	if have, err = h.admin.Topics(ctx, want.Name); err != nil {
		return kafka.Topic{}, fmt.Errorf("describe changelog: %w", err)
	}
	t, ok := have[want.Name]
	if !ok {
		return t, &kafka.Error{Class: kafka.ClassRetriable, Op: "describe changelog", On: want.Name}
	}
	return t, h.verify(ctx, t, want)
}

func (h *Host) verify(ctx context.Context, t kafka.Topic, want kafka.NewTopic) error {
	if t.Partitions != want.Partitions {
		return fmt.Errorf("changelog %s has %d partitions, its input has %d: the input's number was changed, or the topic was created by hand", t.Name, t.Partitions, want.Partitions)
	}
	return task.VerifyConfigs(ctx, h.admin, t.Name, want)
}
