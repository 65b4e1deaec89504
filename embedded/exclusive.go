package embedded

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// exclusiveID is the transactional id of a partition that is assigned by hand: the same in every process, so that whoever
// takes the partition fences whoever had it.
func exclusiveID(app string, partition int32) string {
	return fmt.Sprintf("%s-assigned-%d", app, partition)
}

// exclusive is a transactional producer whose id is the only fence of a partition. One that is fenced after its first commit
// has lost the partition, and must not take the id back as a group's member does, whose place the group keeps.
//
// A broker that has timed a transaction out says the same as one that knows a newer producer. But that takes the timeout: a
// transaction that is younger was ended by another process. For all other errors the id is initialised
// again, which would fence that process; so the group's offsets are looked at before. One that has not committed yet
// is still taking the partition over: fenced, it begins again.
type exclusive struct {
	kafka.Transactional
	id        string
	timeout   time.Duration
	committed func(ctx context.Context, partitions ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error)

	began atomic.Int64 // unix nanoseconds
	taken atomic.Bool  // the first commit is through
	// ours are the offsets that were committed, sent those of the transaction since, which may be in doubt.
	// They belong to whoever has the producer.
	ours, sent map[kafka.TopicPartition]kafka.CommittedOffset
}

func (x *exclusive) Init(ctx context.Context) error {
	if len(x.ours) > 0 {
		var tps []kafka.TopicPartition
		for tp := range x.ours {
			tps = append(tps, tp)
		}
		got, err := x.committed(ctx, tps...)
		if err != nil {
			return err
		}
		for _, tp := range tps {
			o := got[tp]
			if o != x.ours[tp] && o != x.sent[tp] {
				return x.lost("initialise", fmt.Errorf("offset %d of %v was not committed by this one", o.Offset, tp))
			}
			x.ours[tp] = o // a commit that was in doubt is through
		}
	}
	return x.Transactional.Init(ctx)
}

func (x *exclusive) Begin() error {
	x.began.Store(time.Now().UnixNano())
	x.sent = nil
	return x.tell(x.Transactional.Begin())
}

func (x *exclusive) Send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	return x.tell(x.Transactional.Send(ctx, records, func(d kafka.Delivery) {
		d.Err = x.tell(d.Err)
		report(d)
	}))
}

func (x *exclusive) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	if x.sent == nil {
		x.sent = map[kafka.TopicPartition]kafka.CommittedOffset{}
	}
	for _, o := range offsets {
		x.sent[o.TopicPartition] = o
	}
	return x.tell(x.Transactional.SendOffsets(ctx, m, offsets))
}

func (x *exclusive) Commit(ctx context.Context) error {
	if err := x.Transactional.Commit(ctx); err != nil {
		return x.tell(err)
	}
	if x.ours == nil {
		x.ours = map[kafka.TopicPartition]kafka.CommittedOffset{}
	}
	maps.Copy(x.ours, x.sent)
	x.taken.Store(true)
	return nil
}

// tell replaces an error which says that another process has the id.
func (x *exclusive) tell(err error) error {
	if err == nil || !x.taken.Load() || !kafka.IsClass(err, kafka.ClassFenced) || time.Since(time.Unix(0, x.began.Load())) >= x.timeout {
		return err
	}
	return x.lost("write", err)
}

// lost has a class for which nothing is tried again.
func (x *exclusive) lost(op string, why error) error {
	return &kafka.Error{Class: kafka.ClassInvalid, Op: op + " under transactional id", On: x.id,
		Err: fmt.Errorf("%w: assign a partition to one process at a time: %w", ErrTaken, why)}
}
