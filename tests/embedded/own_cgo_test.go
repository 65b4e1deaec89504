//go:build cgo

package embedded

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func init() { ownProducers["confluent"] = openConfluentOwn }

type confluentOwn struct {
	producer *kafka.Producer
	ended    chan struct{}
	fates
}

func openConfluentOwn(brokers string) (own, error) {
	cp, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": brokers, "linger.ms": int(slowly.Milliseconds()), "log_level": 0})
	if err != nil {
		return nil, err
	}
	p := &confluentOwn{producer: cp, ended: make(chan struct{})}
	go func() { // ended by close
		defer close(p.ended)
		for e := range cp.Events() {
			if m, ok := e.(*kafka.Message); ok {
				p.told(m.TopicPartition.Error)
			}
		}
	}()
	return p, nil
}

func (p *confluentOwn) send(topic, key, value string) {
	p.sent()
	if err := p.producer.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny}, Key: []byte(key), Value: []byte(value)}, nil); err != nil {
		p.told(err)
	}
}

func (p *confluentOwn) flush(ctx context.Context) error {
	for ctx.Err() == nil {
		if known, err := p.take(); known {
			return err
		}
		p.producer.Flush(20)
	}
	return ctx.Err()
}

func (p *confluentOwn) close() {
	p.producer.Close()
	<-p.ended
}
