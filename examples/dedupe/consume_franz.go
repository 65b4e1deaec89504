//go:build !cgo

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
)

// consume runs the loop until done.
func consume(ctx context.Context, brokers, dir string, dedupe func(*embedded.Task, string, time.Time, []byte) error, done func() bool) (err error) {
	host, err := franz.Open(ctx, []kgo.Opt{kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(events),
		kgo.SessionTimeout(6 * time.Second), kgo.RebalanceTimeout(10 * time.Second)}, config(dir)) // how long a killed member keeps its place
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, host.Close(closing))
	}()
	for ctx.Err() == nil && host.Err() == nil && !done() {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := host.Client().PollFetches(wait)
		cancel()
		for _, r := range fetches.Records() {
			err := host.Process(r, func(t *embedded.Task) error {
				return dedupe(t, string(r.Key), r.Timestamp, r.Value)
			})
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(ctx.Err(), host.Err())
}
