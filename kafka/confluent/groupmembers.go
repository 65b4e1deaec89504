//go:build cgo

package confluent

import (
	"context"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// memberReader asks who is in a group, on an instance of its own, on which no request has ever been given up. When
// librdkafka (2.14.1, and before) gives up an admin request that still looks for its coordinator, the lookup stays, with a
// reference to what was freed, and ends the process when the coordinator comes up: by an assertion (librdkafka issue
// 4605), or by a segmentation fault on a thread of its own. So a request here has a time limit that does not pass, and
// one that gets no answer ends with its instance: a lookup that ends so still holds its reference.
type memberReader struct {
	n *sender
	a *ck.AdminClient
}

// neverGivenUp is the longest time limit that librdkafka takes.
const neverGivenUp = time.Hour

func (d *admin) newMemberReader() (*memberReader, error) {
	conf, err := adminConf(d.client, d.settings, "members")
	if err != nil {
		return nil, err
	}
	n, err := newSender(d.settings, "members", 0, conf)
	if err != nil {
		return nil, err
	}
	a, err := ck.NewAdminClientFromProducer(n.p)
	if err != nil {
		n.retire()
		return nil, err
	}
	return &memberReader{n: n, a: a}, nil
}

// takeMemberReader gives the reader whose last request was answered, or a new one.
func (d *admin) takeMemberReader() (*memberReader, error) {
	d.reading.Lock()
	r := d.members
	d.members = nil
	d.reading.Unlock()
	if r != nil {
		return r, nil
	}
	return d.newMemberReader()
}

// giveBack keeps a reader for the next question, or ends it.
func (d *admin) giveBack(r *memberReader, answered bool) {
	if answered {
		d.reading.Lock()
		r, d.members = d.members, r
		d.reading.Unlock()
	}
	d.endMemberReader(r)
}

// endMemberReader destroys a reader's instance, without waiting for it: Close does.
func (d *admin) endMemberReader(r *memberReader) {
	if r != nil {
		r.n.retire()
		d.ending.Go(func() { <-r.n.gone })
	}
}

// describe asks once. Not answered: the time is over, and the instance of no further use.
func (r *memberReader) describe(ctx context.Context, group string, within time.Duration) (ds []ck.ConsumerGroupDescription, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := r.a.DescribeConsumerGroups(ctx, []string{group}, ck.SetAdminRequestTimeout(neverGivenUp))
	return got.ConsumerGroupDescriptions, ctx.Err() == nil, err
}

// askMembers asks with one instance after the other, each for twice as long as the one before, because a lookup that began while
// the cluster had no coordinator yet does not end when it has one. It gives up as sliced does: not as long as brokers answer.
func (d *admin) askMembers(ctx context.Context, group string) ([]ck.ConsumerGroupDescription, error) {
	limit := d.limit(ctx)
	until := time.Now().Add(limit)
	for slice := min(2*firstSlice, limit); ; slice = min(2*slice, limit) {
		r, err := d.takeMemberReader()
		if err != nil {
			return nil, invalid("describe group", "%w", err)
		}
		ds, answered, err := r.describe(ctx, group, slice)
		d.giveBack(r, answered)
		if answered {
			return ds, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if ok, _ := d.n.wire.reachable(); !ok && !time.Now().Before(until) {
			return nil, err
		}
	}
}

// DescribeGroup tells a group's state and members. A group that does not exist is Dead.
func (d *admin) DescribeGroup(ctx context.Context, group string) (kafka.Group, error) {
	const op = "describe group"
	if group == "" {
		return kafka.Group{}, invalid(op, "empty group id")
	}
	var g kafka.Group
	err := d.ask(ctx, op, group, func(ctx context.Context, _ ck.AdminOptionRequestTimeout) error {
		// Without a broker there is no coordinator, and nothing to make an instance for.
		err := sliced(ctx, &d.n.calls, d.n.wire, d.limit(ctx), func(ms int) error {
			_, err := d.a.GetMetadata(nil, false, ms)
			if err == nil {
				d.n.wire.answer()
			}
			return err
		})
		if err != nil {
			return err
		}
		ds, err := d.askMembers(ctx, group)
		if err != nil {
			return err
		}
		for _, desc := range ds {
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
