package franz

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// producer is a plain idempotent producer.
type producer struct {
	*sender
	closed atomic.Bool
}

// NewProducer makes an idempotent producer with acks=all.
func (c Client) NewProducer(s kafka.Settings, cfg kafka.ProducerConfig) (kafka.Producer, error) {
	// Without cancellation a record whose request got no answer is never given up: it would
	// not be reported by its delivery timeout. Who sends it again may write it twice, as with
	// any producer that is not transactional.
	sender, err := c.newSender(s, cfg, "producer", kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return nil, err
	}
	return &producer{sender: sender}, nil
}

func (p *producer) Send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	if p.closed.Load() {
		return p.link.call("send").fail("", kgo.ErrClientClosed)
	}
	return p.send(ctx, records, report)
}

// Close delivers what was sent, as far as the context allows, and reports the rest as
// failed.
func (p *producer) Close(ctx context.Context) error {
	if p.closed.Swap(true) {
		return nil
	}
	return p.shut(ctx, "close producer", true)
}

// shut ends the client; every record is reported when it returns without error.
func (s *sender) shut(ctx context.Context, op string, deliver bool) error {
	c := s.link.call(op)
	var undelivered error
	if deliver {
		undelivered = c.fail("", s.cl.Flush(ctx))
	}
	if err := closeClient(ctx, s.cl, s.link, op); err != nil {
		return err
	}
	// franz-go has failed what was left by now; its promise goroutine is still reporting
	grace, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := s.settled(grace); err != nil {
		kafka.CountAbandoned()
		return c.class(kafka.ClassTimeout, "", err)
	}
	return undelivered
}
