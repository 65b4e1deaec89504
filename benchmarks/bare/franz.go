package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pollRecords = 10_000

// franzRun is the loop on franz-go.
type franzRun struct {
	options
	cl      *kgo.Client
	session *kgo.GroupTransactSession // nil for at-least-once
	counts  counts
	meter   *meter

	mu     sync.Mutex
	failed error // the first record that was not delivered
}

func franzLoop(ctx context.Context, o options, m *meter) error {
	r := &franzRun{options: o, meter: m}
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.BrokerList()...), kgo.ConsumerGroup(o.group), kgo.ConsumeTopics(o.In), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(32 << 20), kgo.FetchMaxPartitionBytes(4 << 20),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000), kgo.DisableClientMetrics(),
	}
	if !o.ExactlyOnce() {
		cl, err := kgo.NewClient(opts...)
		if err != nil {
			return fmt.Errorf("open client: %w", err)
		}
		defer cl.Close()
		r.cl = cl
		return r.run(ctx)
	}
	session, err := kgo.NewGroupTransactSession(append(opts, kgo.TransactionalID(o.group+"-bare"))...)
	if err != nil {
		return fmt.Errorf("open client: %w", err)
	}
	defer session.Close()
	r.session, r.cl = session, session.Client()
	if err := session.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return r.run(ctx)
}

func (r *franzRun) run(ctx context.Context) error {
	due := time.Now().Add(r.CommitInterval)
	open := false // something to commit
	for {
		end := ctx.Err() != nil || r.Until > 0 && r.meter.processed.Load() >= r.Until
		if open && (end || !time.Now().Before(due)) {
			if err := r.commit(); err != nil {
				return err
			}
			due, open = time.Now().Add(r.CommitInterval), false
		}
		if end {
			return nil
		}
		n, err := r.poll(ctx, open, due)
		if err != nil {
			return err
		}
		open = open || n > 0
	}
}

// poll counts what one fetch brings. While there is something to commit it waits only until
// that is due.
func (r *franzRun) poll(ctx context.Context, open bool, due time.Time) (int, error) {
	if open {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, due)
		defer cancel()
	}
	fetches := r.cl.PollRecords(ctx, pollRecords)
	if err := fetches.Err0(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return 0, fmt.Errorf("poll: %w", err)
	}
	n := 0
	for it := fetches.RecordIter(); !it.Done(); {
		in := it.Next()
		count := r.counts.add(in.Partition, in.Key, in.Timestamp.UnixMilli())
		r.cl.Produce(context.Background(), &kgo.Record{Topic: r.Out, Partition: in.Partition, Key: in.Key, Value: text(count), Timestamp: in.Timestamp}, r.delivered)
		n++
	}
	if n > 0 {
		r.meter.begin()
		r.meter.processed.Add(int64(n))
	}
	return n, nil
}

func (r *franzRun) delivered(rec *kgo.Record, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = fmt.Errorf("write to %s-%d: %w", rec.Topic, rec.Partition, err)
	}
}

// commit ends the interval. It is not given the signal's context: what was processed is
// committed before the end.
func (r *franzRun) commit() error {
	ctx := context.Background()
	err := r.counts.takeChanged(func(x *cell) error {
		r.cl.Produce(ctx, &kgo.Record{Topic: r.changelog, Partition: x.partition, Key: x.key, Value: x.value(), Timestamp: time.UnixMilli(x.timestamp)}, r.delivered)
		return nil
	})
	if err != nil {
		return err
	}
	if r.session == nil {
		err = r.commitOffsets(ctx)
	} else {
		err = r.commitTransaction(ctx)
	}
	if err == nil {
		r.meter.committed()
	}
	return err
}

func (r *franzRun) commitOffsets(ctx context.Context) error {
	if err := r.cl.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.cl.CommitUncommittedOffsets(ctx); err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	return nil
}

func (r *franzRun) commitTransaction(ctx context.Context) error {
	committed, err := r.session.End(ctx, kgo.TryCommit)
	if err == nil && !committed {
		err = errors.Join(errors.New("it was aborted"), r.failure())
	}
	if err != nil {
		return fmt.Errorf("end transaction: %w", err)
	}
	if err := r.session.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return nil
}

func (r *franzRun) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
