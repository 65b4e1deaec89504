package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// watchTopics looks from time to time whether the topics are still those that the tasks were made
// for, and gives the first change that they cannot live with; nil when ctx ends. Nothing else would tell:
// partitions that were added are not read, and a topic that was deleted and created again between two
// requests looks like the old one to a client.
func (a *App) watchTopics(ctx context.Context, admin kafka.Admin) error {
	tick := time.NewTicker(a.cfg.TopicInterval)
	defer tick.Stop()
	a.mu.Lock()
	started := a.topics
	a.mu.Unlock()
	warned := map[string]bool{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now, err := admin.Topics(ctx, slices.Collect(maps.Keys(started))...)
		if err != nil {
			a.log.Debug("look at the topics", "error", err) // a broker that is away is others' business
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(started)) {
			was, is := started[name], now[name]
			err := changedTopic(name, was, is)
			switch {
			case err == nil:
			case is.ID == was.ID && a.onlyWritten(name): // records go on to the partitions there were
				if !warned[name] {
					a.log.Warn("the output topic was changed; the new partitions are written to after a restart", "topic", name, "partitions", is.Partitions)
				}
				warned[name] = true
			default:
				return err
			}
		}
	}
}

// changedTopic tells what happened to a topic.
func changedTopic(name string, was, is kafka.Topic) error {
	switch {
	case is.Name == "":
		return &kafka.Error{Class: kafka.ClassUnknownTopic, Op: "look at the topics", On: name, Err: errors.New("the topic is gone: it was deleted while the application runs")}
	case is.ID != was.ID:
		return &kafka.Error{Class: kafka.ClassUnknownTopic, Op: "look at the topics", On: name, Err: errors.New("the topic was deleted and created again while the application runs")}
	case is.Partitions != was.Partitions:
		return fmt.Errorf("topic %s has %d partitions and had %d when the application started: start it again; if it has state, the start says what is to be done", name, is.Partitions, was.Partitions)
	}
	return nil
}

// onlyWritten tells whether a topic is an output, and no input.
func (a *App) onlyWritten(name string) bool {
	return slices.Contains(a.outputs(), name) && !slices.Contains(a.inputs(), name)
}
