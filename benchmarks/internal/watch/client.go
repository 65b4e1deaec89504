package watch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Event is something that a client has done.
type Event string

const (
	// Joining: the group is about to be joined.
	Joining Event = "joining"
	// Joined: the group has given a partition of the placement topic.
	Joined Event = "joined"
	// Fencing: a transactional id is about to be initialised.
	Fencing Event = "fencing"
	// Fenced: it is.
	Fenced Event = "fenced"
	// Committed: a transaction is.
	Committed Event = "committed"
)

// Client is a client that tells what it does.
type Client struct {
	kafka.Client
	// On is called at every event, on a goroutine of the application.
	On func(Event)

	polled atomic.Int64
}

// Polled is the time that consumers have spent in Poll.
func (c *Client) Polled() time.Duration { return time.Duration(c.polled.Load()) }

func (c *Client) on(e Event) {
	if c.On != nil {
		c.On(e)
	}
}

// NewConsumer measures its polls.
func (c *Client) NewConsumer(s kafka.Settings, cfg kafka.ConsumerConfig) (kafka.Consumer, error) {
	inner, err := c.Client.NewConsumer(s, cfg)
	if err != nil {
		return nil, err
	}
	return &consumer{inner, c}, nil
}

type consumer struct {
	kafka.Consumer
	client *Client
}

func (x *consumer) Poll(ctx context.Context, into *kafka.Poll) error {
	start := time.Now()
	err := x.Consumer.Poll(ctx, into)
	x.client.polled.Add(int64(time.Since(start)))
	return err
}

// NewTransactional tells of its initialisations and commits.
func (c *Client) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	inner, err := c.Client.NewTransactional(s, cfg)
	if err != nil {
		return nil, err
	}
	return &transactional{inner, c}, nil
}

type transactional struct {
	kafka.Transactional
	client *Client
}

func (x *transactional) Init(ctx context.Context) error {
	x.client.on(Fencing)
	err := x.Transactional.Init(ctx)
	if err == nil {
		x.client.on(Fenced)
	}
	return err
}

func (x *transactional) Commit(ctx context.Context) error {
	err := x.Transactional.Commit(ctx)
	if err == nil {
		x.client.on(Committed)
	}
	return err
}

// NewMembership tells when the group is joined.
func (c *Client) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	c.on(Joining)
	var m atomic.Pointer[kafka.Membership]
	var joined atomic.Bool
	look := func() {
		if p := m.Load(); p != nil && len((*p).State().Holds) > 0 && !joined.Swap(true) {
			c.on(Joined)
		}
	}
	changed := cfg.Changed
	cfg.Changed = func() {
		look()
		if changed != nil {
			changed()
		}
	}
	inner, err := c.Client.NewMembership(s, cfg)
	if err != nil {
		return nil, err
	}
	m.Store(&inner)
	look() // the change may have come before there was anything to look at
	return inner, nil
}
