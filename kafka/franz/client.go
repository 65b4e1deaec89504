package franz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Client implements [kafka.Client] with franz-go. The zero value is ready to use.
type Client struct {
	// Options are added to those that Tidemark sets for every part; they are applied last.
	// An option that a part depends on (such as the isolation level of a consumer) must not
	// be among them. A hook must not keep a fetched record: it is used again (its bytes are not).
	Options []kgo.Opt
}

var _ kafka.Client = Client{}

// Name is "franz".
func (Client) Name() string { return "franz" }

// dial makes the franz-go client of one part, which connects when it is first used.
// Cancelling the link's context makes it give up whatever it is waiting for.
func (c Client) dial(s kafka.Settings, part string, opts ...kgo.Opt) (*kgo.Client, *link, error) {
	if len(s.Brokers) == 0 {
		return nil, nil, invalid("open "+part, "", "Settings.Brokers is empty: give at least one host:port")
	}
	l := newLink(s.Brokers, 3*requestTimeout(s))
	base, err := common(s, part)
	if err != nil {
		return nil, nil, err
	}
	all := append(append(append(base, kgo.WithContext(l.ctx), kgo.WithHooks(l)), opts...), c.Options...)
	cl, err := kgo.NewClient(all...)
	if err != nil {
		l.cancel()
		return nil, nil, &kafka.Error{Class: kafka.ClassInvalid, Op: "open " + part, Err: err}
	}
	return cl, l, nil
}

// common are the options of all parts.
func common(s kafka.Settings, part string) ([]kgo.Opt, error) {
	id := s.ClientID
	if id == "" {
		id = "tidemark"
	}
	timeout := requestTimeout(s)
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.Brokers...),
		kgo.ClientID(id + "-" + part),
		kgo.DisableClientMetrics(), // KIP-714 traffic that nobody asked for
		kgo.DialTimeout(timeout),
		kgo.RequestTimeoutOverhead(timeout),
		kgo.RetryTimeout(3 * timeout),
		// The defaults (2.5 s, 20 ms) are waited for at every new topic, and after nearly
		// every commit.
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.ConcurrentTransactionsBackoff(concurrentBackoff),
		kgo.WithLogger(newLogger(s.Logger)),
	}
	if part != "admin" {
		// What a program asks first is for an admin to answer, who says it when a broker wants TLS or a login. Where that
		// went well, a broker that hangs up is one that ends or begins, and must fail no record.
		opts = append(opts, kgo.AlwaysRetryEOF())
	}
	if s.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(s.TLS.Clone()))
	}
	if s.SASL.Mechanism != "" {
		m, err := mechanism(s.SASL)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func requestTimeout(s kafka.Settings) time.Duration {
	if s.RequestTimeout > 0 {
		return s.RequestTimeout
	}
	return 10 * time.Second
}

func mechanism(s kafka.SASL) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism(), nil
	}
	return nil, invalid("open", "", fmt.Sprintf("SASL mechanism %q is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", s.Mechanism))
}

func invalid(op, on, why string) error {
	return &kafka.Error{Class: kafka.ClassInvalid, Op: op, On: on, Err: errors.New(why)}
}

// closeGrace is how long a close may go on after its context, once everything that the
// client waits for has been cancelled.
const closeGrace = time.Second

// closeClient ends a franz-go client by the context's deadline. Without cancellation a
// close waits for requests that may never be answered.
func closeClient(ctx context.Context, cl *kgo.Client, l *link, op string) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		cl.Close()
	}()
	select {
	case <-closed:
		l.cancel()
		return nil
	case <-ctx.Done():
	}
	l.cancel()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-closed:
		return nil
	case <-grace.C:
		kafka.CountAbandoned()
		return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: l.addrs, Err: errors.New("the client did not end and was abandoned")}
	}
}
