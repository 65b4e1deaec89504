//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Topics describes those of names that exist.
func (d *admin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	const op = "describe topics"
	found := make(map[string]kafka.Topic, len(names))
	if len(names) == 0 {
		return found, nil
	}
	on := strings.Join(names, ",")
	err := d.ask(ctx, op, on, func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		clear(found)
		r, err := d.a.DescribeTopics(ctx, ck.NewTopicCollectionOfTopicNames(names), limit)
		if err != nil {
			return err
		}
		for _, t := range r.TopicDescriptions {
			switch code := t.Error.Code(); code {
			case ck.ErrNoError:
				found[t.Name] = kafka.Topic{Name: t.Name, ID: topicID(t.TopicID), Partitions: int32(len(t.Partitions))}
			case ck.ErrUnknownTopicOrPart, ck.ErrUnknownTopic:
			default:
				return &topicProblem{t.Name, t.Error}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// topicProblem is an error of one topic among several.
type topicProblem struct {
	topic string
	err   ck.Error
}

func (p *topicProblem) Error() string { return "topic " + p.topic + ": " + p.err.Error() }
func (p *topicProblem) Unwrap() error { return p.err }

// TopicConfigs gives the effective configuration of a topic.
func (d *admin) TopicConfigs(ctx context.Context, name string) (map[string]string, error) {
	return d.configs(ctx, "describe the configuration of topic", ck.ResourceTopic, name)
}

// BrokerConfigs gives the effective configuration of one broker.
func (d *admin) BrokerConfigs(ctx context.Context) (map[string]string, error) {
	id := ""
	err := d.ask(ctx, "list brokers", "", func(ctx context.Context, _ ck.AdminOptionRequestTimeout) error {
		m, err := d.a.GetMetadata(nil, false, int(d.limit(ctx).Milliseconds()))
		if err != nil {
			return err
		}
		if len(m.Brokers) == 0 {
			return ck.NewError(ck.ErrAllBrokersDown, "no broker is known", false)
		}
		id = strconv.Itoa(int(m.Brokers[0].ID))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.configs(ctx, "describe the configuration of broker", ck.ResourceBroker, id)
}

func (d *admin) configs(ctx context.Context, op string, kind ck.ResourceType, name string) (map[string]string, error) {
	var values map[string]string
	err := d.ask(ctx, op, name, func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		values = map[string]string{}
		r, err := d.a.DescribeConfigs(ctx, []ck.ConfigResource{{Type: kind, Name: name}}, limit)
		if err != nil {
			return err
		}
		for _, res := range r {
			if err := codeOf(res.Error); err != nil {
				return err
			}
			for k, v := range res.Config {
				values[k] = v.Value
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// CreateTopics creates topics and waits until metadata shows them. If one of them fails
// the others may have been created.
func (d *admin) CreateTopics(ctx context.Context, topics ...kafka.NewTopic) error {
	const op = "create topics"
	if len(topics) == 0 {
		return nil
	}
	specs := make([]ck.TopicSpecification, len(topics))
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
		specs[i] = ck.TopicSpecification{Topic: t.Name, NumPartitions: int(t.Partitions), ReplicationFactor: int(t.Replication), Config: t.Configs}
	}
	on := strings.Join(names, ",")
	// Not repeated as a whole by ask: what the first try has created would exist in the second.
	pending := specs
	err := d.ask(ctx, op, on, func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		r, err := d.a.CreateTopics(ctx, pending, limit, ck.SetAdminOperationTimeout(d.limit(ctx)))
		if err != nil {
			return err
		}
		var problem error
		for _, t := range r {
			if t.Error.Code() == ck.ErrNoError {
				pending = slices.DeleteFunc(slices.Clone(pending), func(s ck.TopicSpecification) bool { return s.Topic == t.Topic })
			} else if problem == nil {
				problem = &topicProblem{t.Topic, t.Error}
			}
		}
		return problem
	})
	if err != nil {
		return err
	}
	return d.await(ctx, op, on, func(have map[string]kafka.Topic) error {
		for _, t := range topics {
			if n := have[t.Name].Partitions; n == 0 || t.Partitions > 0 && n != t.Partitions {
				return fmt.Errorf("topic %s shows %d of %d partitions", t.Name, n, t.Partitions)
			}
		}
		return nil
	}, names)
}

// DeleteTopics deletes topics and waits until metadata no longer shows them.
func (d *admin) DeleteTopics(ctx context.Context, names ...string) error {
	const op = "delete topics"
	if len(names) == 0 {
		return nil
	}
	on := strings.Join(names, ",")
	err := d.ask(ctx, op, on, func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		r, err := d.a.DeleteTopics(ctx, names, limit, ck.SetAdminOperationTimeout(d.limit(ctx)))
		if err != nil {
			return err
		}
		for _, t := range r {
			switch t.Error.Code() {
			case ck.ErrNoError, ck.ErrUnknownTopicOrPart:
			default:
				return &topicProblem{t.Topic, t.Error}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.await(ctx, op, on, func(have map[string]kafka.Topic) error {
		for name := range have {
			return errors.New("topic " + name + " is still there")
		}
		return nil
	}, names)
}

// await asks for topics until they are as wanted.
func (d *admin) await(ctx context.Context, op, on string, wanted func(map[string]kafka.Topic) error, names []string) error {
	tick := time.NewTicker(retryPause)
	defer tick.Stop()
	for {
		have, err := d.Topics(ctx, names...)
		if err != nil {
			return err
		}
		missing := wanted(have)
		if missing == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.life.Done():
			return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: on, Err: errClosed}
		case <-ctx.Done():
			return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: on, Err: fmt.Errorf("%w: %w", ctx.Err(), missing)}
		}
	}
}
