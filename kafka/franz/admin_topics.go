package franz

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

func (a *admin) Topics(ctx context.Context, names ...string) (map[string]kafka.Topic, error) {
	c, err := a.begin("describe topics")
	if err != nil || len(names) == 0 { // an empty list would ask for all of them
		return nil, err
	}
	infos, err := loadTopics(ctx, a.link, a.cl, names)
	if err != nil {
		return nil, c.fail("", err)
	}
	topics := make(map[string]kafka.Topic, len(infos))
	for name, info := range infos {
		switch {
		case errors.Is(info.err, kerr.UnknownTopicOrPartition):
		case info.err != nil && !errors.Is(info.err, kerr.LeaderNotAvailable):
			return nil, c.fail(name, info.err)
		default:
			topics[name] = kafka.Topic{Name: name, ID: info.id, Partitions: int32(len(info.partitions))}
		}
	}
	return topics, nil
}

func (a *admin) TopicConfigs(ctx context.Context, name string) (map[string]string, error) {
	c, err := a.begin("describe configuration of topic")
	if err != nil {
		return nil, err
	}
	resources, err := patiently(ctx, a.link, func() (kadm.ResourceConfigs, error) { return a.adm.DescribeTopicConfigs(ctx, name) })
	if err != nil {
		return nil, c.fail(name, err)
	}
	configs := make(map[string]string)
	for _, r := range resources {
		if r.Err != nil {
			return nil, c.fail(name, r.Err)
		}
		for _, entry := range r.Configs {
			configs[entry.Key] = entry.MaybeValue()
		}
	}
	return configs, nil
}

// BrokerConfigs gives the effective configuration of one broker.
func (a *admin) BrokerConfigs(ctx context.Context) (map[string]string, error) {
	c, err := a.begin("describe configuration of broker")
	if err != nil {
		return nil, err
	}
	brokers, err := patiently(ctx, a.link, func() (kadm.BrokerDetails, error) { return a.adm.ListBrokers(ctx) })
	if err != nil || len(brokers) == 0 {
		return nil, c.fail("", cmp.Or(err, errors.New("no broker is known")))
	}
	id := brokers.NodeIDs()[0]
	resources, err := patiently(ctx, a.link, func() (kadm.ResourceConfigs, error) { return a.adm.DescribeBrokerConfigs(ctx, id) })
	if err != nil {
		return nil, c.fail(fmt.Sprint(id), err)
	}
	configs := make(map[string]string)
	for _, r := range resources {
		if r.Err != nil {
			return nil, c.fail(fmt.Sprint(id), r.Err)
		}
		for _, entry := range r.Configs {
			configs[entry.Key] = entry.MaybeValue()
		}
	}
	return configs, nil
}

func (a *admin) CreateTopics(ctx context.Context, topics ...kafka.NewTopic) error {
	c, err := a.begin("create topic")
	if err != nil || len(topics) == 0 {
		return err
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15_000
	for _, topic := range topics {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = topic.Name, topic.Partitions, topic.Replication
		for key, value := range topic.Configs {
			config := kmsg.NewCreateTopicsRequestTopicConfig()
			config.Name, config.Value = key, &value
			t.Configs = append(t.Configs, config)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := patiently(ctx, a.link, func() (*kmsg.CreateTopicsResponse, error) { return req.RequestWith(ctx, a.cl) })
	if err != nil {
		return c.fail("", err)
	}
	var first error
	created := make(map[string]int32)
	for _, t := range resp.Topics {
		err := kadmError(t.ErrorCode, t.ErrorMessage)
		if err == nil {
			created[t.Topic] = 0
			continue
		}
		// that a topic exists may be no trouble to the caller: anything else goes first
		if first == nil || errors.Is(first, kerr.TopicAlreadyExists) {
			first = c.fail(t.Topic, err)
		}
	}
	for _, topic := range topics {
		if _, ok := created[topic.Name]; ok {
			created[topic.Name] = topic.Partitions
		}
	}
	if err := a.awaitTopics(ctx, created); err != nil {
		return c.fail("", err)
	}
	return first
}

// awaitTopics waits until every broker knows the topics with all partitions, each with a
// leader. The controller has decided before a broker has heard of it.
func (a *admin) awaitTopics(ctx context.Context, created map[string]int32) error {
	names := make([]string, 0, len(created))
	for name := range created {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	if _, err := loadTopics(ctx, a.link, a.cl, names); err != nil { // also discovers all brokers
		return err
	}
	for _, broker := range a.cl.DiscoveredBrokers() {
		for {
			infos, err := loadTopics(ctx, a.link, retriable{broker}, names)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if err == nil && complete(infos, created) {
				break
			}
			if err := a.link.wait(ctx, pollPause); err != nil {
				return err
			}
		}
	}
	return nil
}

func complete(infos map[string]topicInfo, want map[string]int32) bool {
	for name, partitions := range want {
		info := infos[name]
		if info.err != nil || partitions >= 0 && int(partitions) != len(info.partitions) {
			return false
		}
		for _, leader := range info.partitions {
			if !leader {
				return false
			}
		}
	}
	return true
}

func (a *admin) DeleteTopics(ctx context.Context, names ...string) error {
	c, err := a.begin("delete topic")
	if err != nil || len(names) == 0 {
		return err
	}
	responses, err := patiently(ctx, a.link, func() (kadm.DeleteTopicResponses, error) { return a.adm.DeleteTopics(ctx, names...) })
	if err != nil {
		return c.fail("", err)
	}
	for _, r := range responses {
		if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
			return c.fail(r.Topic, r.Err)
		}
	}
	return nil
}

func (a *admin) DeleteRecords(ctx context.Context, before map[kafka.TopicPartition]int64) error {
	c, err := a.begin("delete records of")
	if err != nil || len(before) == 0 {
		return err
	}
	offsets := make(kadm.Offsets)
	for tp, offset := range before {
		offsets.AddOffset(tp.Topic, tp.Partition, offset, -1)
	}
	responses, err := patiently(ctx, a.link, func() (kadm.DeleteRecordsResponses, error) { return a.adm.DeleteRecords(ctx, offsets) })
	if err != nil {
		return c.fail("", err)
	}
	var first error
	responses.Each(func(r kadm.DeleteRecordsResponse) {
		if r.Err != nil && first == nil {
			first = c.fail(kafka.TopicPartition{Topic: r.Topic, Partition: r.Partition}.String(), r.Err)
		}
	})
	return first
}
