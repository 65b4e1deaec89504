package streams_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// refusing is a client whose offset commits are refused as often as refuse says.
type refusing struct {
	kafka.Client
	class  kafka.ErrorClass
	refuse *atomic.Int32
}

func (c refusing) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	txn, err := c.Client.NewTransactional(s, cfg)
	return refusingTxn{txn, c}, err
}

type refusingTxn struct {
	kafka.Transactional
	c refusing
}

func (x refusingTxn) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	if x.c.refuse.Add(-1) >= 0 {
		return &kafka.Error{Class: x.c.class, Op: "send offsets", On: m.Group, Err: errors.New("refused")}
	}
	return x.Transactional.SendOffsets(ctx, m, offsets)
}

// A commit that the group refuses, because it has dropped the member before the member heard of
// it, means that the place was lost: the application takes its place again and goes on.
func TestCommitOfALostMember(t *testing.T) {
	b := testbroker.Kfake(t)
	for _, class := range []kafka.ErrorClass{kafka.ClassUnknownMember, kafka.ClassInstanceFenced, kafka.ClassIllegalGeneration} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			refuse := &atomic.Int32{}
			cfg := e.config()
			cfg.Guarantee, cfg.Client = streams.ExactlyOnce, refusing{e.client, class, refuse}
			app := e.start(e.wordCount(), cfg)
			in, want := lines(50)
			e.produce(in...)
			app.catchUp()
			refuse.Store(2)
			e.produce(in...)
			kafkatest.Eventually(t, time.Minute, "refusals", func() bool { return refuse.Load() < 0 })
			app.catchUp()
			app.close()
			for w := range want {
				want[w] *= 2
			}
			e.checkCounts(streams.ExactlyOnce, want)
		})
	}
}

// hooked is a client whose offset commits go through a function first.
type hooked struct {
	kafka.Client
	before func() error
}

func (c hooked) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	txn, err := c.Client.NewTransactional(s, cfg)
	return hookedTxn{txn, c}, err
}

type hookedTxn struct {
	kafka.Transactional
	c hooked
}

func (x hookedTxn) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	if err := x.c.before(); err != nil {
		return err
	}
	return x.Transactional.SendOffsets(ctx, m, offsets)
}

// A commit fails while the next interval is running, with records, writes and outputs of its
// own: both are dropped, and each record counts once.
func TestCommitFailsWhileTheNextIntervalRuns(t *testing.T) {
	b := testbroker.Kfake(t)
	for _, g := range guarantees {
		for _, class := range []kafka.ErrorClass{kafka.ClassAbortable, kafka.ClassFenced, kafka.ClassInDoubt} {
			t.Run(g.String()+"/"+class.String(), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, b, clients[0])
				var seen atomic.Int64 // records that were processed, again and again
				var armed atomic.Bool
				client := hooked{e.client, func() error {
					if !armed.CompareAndSwap(true, false) {
						return nil
					}
					before := seen.Load()
					e.produce("2", "2")
					for seen.Load() < before+2 {
						wait(time.Millisecond)
					}
					wait(5 * time.Millisecond) // the outputs are behind the count
					return &kafka.Error{Class: class, Op: "send offsets", Err: errors.New("refused")}
				}}
				topology := processor.NewTopology()
				count := processor.KeyValue("count", serde.String, serde.Int64)
				processor.AddSource(topology, "source", serde.String, serde.String, e.in)
				processor.AddProcessor(topology, "count", func() counting { return counting{count, &seen} }, []string{"source"}, count)
				processor.AddSink(topology, "sink", e.out, serde.String, serde.Int64, "count")
				cfg := e.config()
				cfg.Guarantee, cfg.Client, cfg.CommitInterval = g, client, 10*time.Millisecond
				app := e.start(topology, cfg)
				app.catchUp()
				armed.Store(true)
				e.produce("1", "1")
				kafkatest.Eventually(t, time.Minute, "the refusal", func() bool { return !armed.Load() })
				app.catchUp()
				kafkatest.Eventually(t, time.Minute, "all four records", func() bool { return seen.Load() >= 4 })
				app.catchUp()
				app.close()
				_, all := e.counts(e.out)
				got := all["all"]
				if g == streams.AtLeastOnce {
					slices.Sort(got)
					got = slices.Compact(got)
				}
				// Two partitions, two tasks: each counts to two.
				slices.Sort(got)
				want := []int64{1, 1, 2, 2}
				if g == streams.AtLeastOnce {
					want = []int64{1, 2}
				}
				if !slices.Equal(got, want) {
					t.Errorf("counts %v, want %v", got, want)
				}
			})
		}
	}
}

// counting counts all records of its task.
type counting struct {
	count processor.KeyValueHandle[string, int64]
	seen  *atomic.Int64
}

func (p counting) Process(ctx processor.Context[string, int64], r processor.Record[string, string]) error {
	n, _, err := p.count.In(ctx).Get("all")
	if err != nil {
		return err
	}
	if err := p.count.In(ctx).Put("all", n+1); err != nil {
		return err
	}
	err = ctx.Forward(processor.Record[string, int64]{Key: "all", Value: n + 1, Timestamp: r.Timestamp})
	p.seen.Add(1)
	return err
}
