package kafkatest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Run checks that client keeps every promise of package kafka's interfaces, on broker.
// Tests that need faults run only on an embedded broker (Broker.Cluster not nil). Without
// groups all of them run: consumer, producer, transactional, fencing, offsets, doubt,
// membership, admin, unreachable.
func Run(t *testing.T, client kafka.Client, broker Broker, groups ...string) {
	s := &suite{client: client, broker: broker}
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"consumer", consumerTests},
		{"producer", producerTests},
		{"transactional", transactionalTests},
		{"fencing", fencingTests},
		{"offsets", offsetsTests},
		{"doubt", doubtTests},
		{"membership", membershipTests},
		{"admin", adminTests},
		{"unreachable", unreachableTests},
	} {
		if len(groups) > 0 && !slices.Contains(groups, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) {
					if c.faults && broker.Cluster == nil {
						t.Skip("needs a broker whose faults can be injected")
					}
					c.run(t, s)
				})
			}
		})
	}
}

// test is one test of the suite; faults tells that it needs an embedded broker.
type test struct {
	name   string
	faults bool
	run    func(t *testing.T, s *suite)
}

// suite is a client under test and its broker.
type suite struct {
	client kafka.Client
	broker Broker
}

// patience bounds everything that is expected to happen: long, because machines are slow.
const patience = 90 * time.Second

// grace is how much longer than its context a call may take.
const grace = 3 * time.Second

// ctx gives a context for calls that are expected to succeed.
func (s *suite) ctx(t *testing.T) context.Context { return within(t, patience) }

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// closing closes a part at the end of the test; an error is only logged, as the broker
// may be gone by design of the test.
func closing(t *testing.T, part kafka.Closer) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := part.Close(ctx); err != nil {
			t.Logf("close: %v", err)
		}
	})
}

func (s *suite) admin(t *testing.T) kafka.Admin {
	t.Helper()
	a, err := s.client.NewAdmin(s.broker.Settings())
	noError(t, err)
	closing(t, a)
	return a
}

func (s *suite) consumer(t *testing.T, cfg kafka.ConsumerConfig) kafka.Consumer {
	t.Helper()
	c, err := s.client.NewConsumer(s.broker.Settings(), cfg)
	noError(t, err)
	closing(t, c)
	return c
}

func (s *suite) producer(t *testing.T, cfg kafka.ProducerConfig) kafka.Producer {
	t.Helper()
	p, err := s.client.NewProducer(s.broker.Settings(), cfg)
	noError(t, err)
	closing(t, p)
	return p
}

// transactional makes a transactional producer and initialises it.
func (s *suite) transactional(t *testing.T, id string) kafka.Transactional {
	t.Helper()
	x := s.uninitialised(t, id)
	noError(t, x.Init(s.ctx(t)))
	return x
}

func (s *suite) uninitialised(t *testing.T, id string) kafka.Transactional {
	t.Helper()
	x, err := s.client.NewTransactional(s.broker.Settings(), kafka.TransactionalConfig{ID: id})
	noError(t, err)
	closing(t, x)
	return x
}

func (s *suite) membership(t *testing.T, cfg kafka.MembershipConfig) kafka.Membership {
	t.Helper()
	m, err := s.client.NewMembership(s.broker.Settings(), cfg)
	noError(t, err)
	closing(t, m)
	return m
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error (class %s): %v", kafka.ClassOf(err), err)
	}
}

// wantClass fails unless err is an error with one of the classes (K2).
func wantClass(t *testing.T, err error, classes ...kafka.ErrorClass) {
	t.Helper()
	var e *kafka.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v (%T), want a *kafka.Error with class %v", err, err, classes)
	}
	for _, c := range classes {
		if e.Class == c {
			return
		}
	}
	t.Fatalf("got class %s of error %v, want %v", e.Class, err, classes)
}

// bounded runs a call with a context of d and fails if it takes noticeably longer (K4).
func bounded(t *testing.T, d time.Duration, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	if took := time.Since(start); took > d+grace {
		t.Fatalf("the call took %v, although its context ended after %v", took, d)
	}
	return err
}
