//go:build cgo

package confluent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// admin asks and changes topics and groups. It runs on a producer instance that produces
// nothing: an AdminClient of its own cannot hand its log lines over.
type admin struct {
	n    *sender
	a    *ck.AdminClient
	wait time.Duration

	life   context.Context // ends with Close, and every call with it
	end    context.CancelFunc
	calls  sync.RWMutex // shared by every call; the instance is destroyed under it
	closed bool
	once   sync.Once
}

// NewAdmin makes an admin client.
func (c Client) NewAdmin(s kafka.Settings) (kafka.Admin, error) {
	const op = "make the admin client"
	s = withDefaults(s)
	conf, err := base(s, "admin")
	if err == nil {
		conf["go.delivery.report.fields"] = "none"
		conf["go.events.channel.size"] = 64
		conf["go.produce.channel.size"] = 1
		err = c.extend(conf)
	}
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	n, err := newSender(s, "admin", 0, conf)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	a, err := ck.NewAdminClientFromProducer(n.p)
	if err != nil {
		n.retire()
		return nil, invalid(op, "%w", err)
	}
	d := &admin{n: n, a: a, wait: s.RequestTimeout}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Close ends the client and the calls that are under way.
func (d *admin) Close(ctx context.Context) error {
	d.once.Do(func() {
		d.end()
		d.n.calls.Add(1) // the instance must outlive the calls
		go func() {
			defer d.n.calls.Done()
			d.calls.Lock()
			defer d.calls.Unlock()
			d.closed = true
		}()
	})
	return d.n.close(ctx, "close the admin client", "")
}

// ask runs one request, again and again while the broker says that it may succeed later,
// until the context ends. The time limit of one request goes into its options.
func (d *admin) ask(ctx context.Context, op, on string, request func(context.Context, ck.AdminOptionRequestTimeout) error) error {
	d.calls.RLock()
	defer d.calls.RUnlock()
	if d.closed || d.life.Err() != nil {
		return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: on, Err: errClosed}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	for {
		err := request(ctx, ck.SetAdminRequestTimeout(d.limit(ctx)))
		if err == nil {
			d.n.wire.answer()
			return nil
		}
		if d.life.Err() != nil {
			return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: on, Err: errClosed}
		}
		if classOf(err) != kafka.ClassRetriable {
			return d.n.wire.fail(op, on, err)
		}
		d.n.wire.answer()
		if !pause(ctx) {
			return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: on, Err: fmt.Errorf("%w: the last answer was: %w", ctx.Err(), err)}
		}
	}
}

var errClosed = errors.New("the admin client was closed")

// limit is the time one request may take.
func (d *admin) limit(ctx context.Context) time.Duration {
	wait := d.wait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	return max(wait, time.Millisecond)
}

// codeOf gives the error of a result, or nil.
func codeOf(e ck.Error) error {
	if e.Code() == ck.ErrNoError {
		return nil
	}
	return e
}

func topicID(u ck.UUID) (id kafka.TopicID) {
	binary.BigEndian.PutUint64(id[:8], uint64(u.GetMostSignificantBits()))
	binary.BigEndian.PutUint64(id[8:], uint64(u.GetLeastSignificantBits()))
	return id
}

// DescribeGroup tells a group's state and members. A group that does not exist is Dead.
func (d *admin) DescribeGroup(ctx context.Context, group string) (kafka.Group, error) {
	const op = "describe group"
	if group == "" {
		return kafka.Group{}, invalid(op, "empty group id")
	}
	var g kafka.Group
	err := d.ask(ctx, op, group, func(ctx context.Context, limit ck.AdminOptionRequestTimeout) error {
		r, err := d.a.DescribeConsumerGroups(ctx, []string{group}, limit)
		if err != nil {
			return err
		}
		for _, desc := range r.ConsumerGroupDescriptions {
			if desc.Error.Code() == ck.ErrGroupIDNotFound {
				g = kafka.Group{State: "Dead"}
				return nil
			}
			if err := codeOf(desc.Error); err != nil {
				return err
			}
			g = kafka.Group{State: desc.State.String()}
			for _, m := range desc.Members {
				g.Members = append(g.Members, kafka.GroupMember{ID: m.ConsumerID, InstanceID: m.GroupInstanceID, ClientID: m.ClientID, Host: m.Host})
			}
		}
		return nil
	})
	return g, err
}
