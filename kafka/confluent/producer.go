//go:build cgo

package confluent

import (
	"context"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	defaultMaxBuffered     = 100_000
	defaultDeliveryTimeout = 2 * time.Minute
	defaultTxnTimeout      = 10 * time.Second
)

// producer is an idempotent producer.
type producer struct{ *sender }

// NewProducer makes an idempotent producer with acks=all.
func (c Client) NewProducer(s kafka.Settings, cfg kafka.ProducerConfig) (kafka.Producer, error) {
	const op = "make the producer"
	s = withDefaults(s)
	cfg = producerDefaults(cfg)
	conf, err := c.producerConf(s, "producer", cfg)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	n, err := newSender(s, "producer", cfg.MaxBufferedRecords, conf)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	return producer{n}, nil
}

func producerDefaults(cfg kafka.ProducerConfig) kafka.ProducerConfig {
	if cfg.MaxBufferedRecords == 0 {
		cfg.MaxBufferedRecords = defaultMaxBuffered
	}
	if cfg.DeliveryTimeout == 0 {
		cfg.DeliveryTimeout = defaultDeliveryTimeout
	}
	return cfg
}

// Send hands records over.
func (p producer) Send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	return p.send(ctx, records, report)
}

// Close waits until what was sent is acknowledged, and ends the producer. What is not when
// the context ends is reported with ClassClosed; it may have been written.
func (p producer) Close(ctx context.Context) error {
	p.shut()
	select {
	case <-p.ledger.waitIdle():
	case <-ctx.Done():
	}
	return p.close(ctx, "close the producer", "")
}
