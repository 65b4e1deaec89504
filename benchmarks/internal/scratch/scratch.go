package scratch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topics makes topics.
type Topics struct {
	cl  *kgo.Client
	adm *kadm.Client
}

// Dial makes a client for brokers, a list of host:port split by commas.
func Dial(brokers string) (*Topics, error) {
	// With the default age topics are listed from a cache, which does not know new ones.
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DisableClientMetrics(), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("open client: %w", err)
	}
	return &Topics{cl, kadm.NewClient(cl)}, nil
}

// Close ends the client.
func (t *Topics) Close() { t.cl.Close() }

// timeout bounds what is asked of the broker.
const timeout = 30 * time.Second

// Like makes a topic with as many partitions as another, and returns when it can be used.
func (t *Topics) Like(ctx context.Context, model, name string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	topics, err := t.adm.ListTopics(ctx, model)
	if err == nil {
		err = topics[model].Err
	}
	if err != nil {
		return fmt.Errorf("look up topic %s: %w", model, err)
	}
	if _, err := t.adm.CreateTopic(ctx, int32(len(topics[model].Partitions)), -1, nil, name); err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	for {
		topics, err := t.adm.ListTopics(ctx, name)
		if err == nil {
			err = topics[name].Err
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for topic %s: %w", name, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Records is the number of offsets of a topic.
func (t *Topics) Records(ctx context.Context, topic string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ends, err := t.adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("look up the end of topic %s: %w", topic, err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, nil
}

// DeleteAll deletes all topics whose names begin with prefix.
func (t *Topics) DeleteAll(prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	topics, err := t.adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	var names []string
	for name := range topics {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if _, err := t.adm.DeleteTopics(ctx, names...); err != nil {
		return fmt.Errorf("delete topics %v: %w", names, err)
	}
	return nil
}
