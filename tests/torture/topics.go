package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// createTopics makes topics, and returns when the brokers show them: the answer to a creation comes before that, seconds
// before it on a busy machine, and a process that starts in between is right not to wait for long.
func (w *world) createTopics(ctx context.Context, names ...string) error {
	made, err := w.adm.CreateTopics(ctx, partitions, 1, nil, names...)
	if err == nil {
		err = made.Error()
	}
	if err != nil {
		return fmt.Errorf("create topics %s: %w", strings.Join(names, ", "), err)
	}
	var unknown error
	shown, err := until(ctx, patience, func() (bool, error) {
		topics, err := w.adm.ListTopics(ctx, names...)
		if err == nil {
			err = topics.Error()
		}
		unknown = err
		return err == nil, nil
	})
	if !shown {
		return fmt.Errorf("the brokers do not show topics %s that were created: %w", strings.Join(names, ", "), errors.Join(err, unknown))
	}
	return nil
}

// deleteTopics leaves a broker that is not ours as it was found.
func (w *world) deleteTopics(ctx context.Context) error {
	all, err := w.adm.ListTopics(ctx)
	if err != nil {
		return err
	}
	var mine []string
	for _, topic := range all.Names() {
		if strings.HasPrefix(topic, w.names.app+".") || strings.HasPrefix(topic, w.names.app+"-") {
			mine = append(mine, topic)
		}
	}
	_, err = w.adm.DeleteTopics(ctx, mine...)
	return err
}
