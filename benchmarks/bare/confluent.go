//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// confluentRun is the loop on confluent-kafka-go.
type confluentRun struct {
	options
	c       *ck.Consumer
	p       *ck.Producer
	counts  counts
	meter   *meter
	next    map[int32]ck.Offset // positions of the running interval
	reports sync.WaitGroup      // the goroutine that counts them
	sent    int64

	mu     sync.Mutex
	acked  int64      // reports that came
	all    *sync.Cond // signalled when acked is waited
	waited int64
	failed error // the first record that was not delivered
}

func confluentLoop(ctx context.Context, o options, m *meter) (err error) {
	r := &confluentRun{options: o, meter: m, next: map[int32]ck.Offset{}}
	r.all = sync.NewCond(&r.mu)
	if r.c, err = ck.NewConsumer(&ck.ConfigMap{
		"bootstrap.servers": o.Brokers, "group.id": o.group, "auto.offset.reset": "earliest", "enable.auto.commit": false,
		"isolation.level": "read_committed", "enable.metrics.push": false,
		"max.partition.fetch.bytes": 4 << 20, "queued.min.messages": 100_000,
		"fetch.queue.backoff.ms": 5, // the default waits a second whenever the queue was full
	}); err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	defer func() { err = errors.Join(err, r.c.Close()) }()
	producer := ck.ConfigMap{
		"bootstrap.servers": o.Brokers, "enable.idempotence": true, "acks": "all", "linger.ms": 5, "compression.type": "none",
		"queue.buffering.max.messages": 1_000_000, "enable.metrics.push": false, "go.delivery.report.fields": "none",
	}
	if o.ExactlyOnce() {
		producer["transactional.id"] = o.group + "-bare"
	}
	if r.p, err = ck.NewProducer(&producer); err != nil {
		return fmt.Errorf("open producer: %w", err)
	}
	r.reports.Go(r.countReports)
	defer r.reports.Wait()
	defer r.p.Close()
	if o.ExactlyOnce() {
		if err := r.p.InitTransactions(ctx); err != nil {
			return fmt.Errorf("initialise transactions: %w", err)
		}
		if err := r.p.BeginTransaction(); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
	}
	if err := r.c.Subscribe(o.In, nil); err != nil {
		return fmt.Errorf("subscribe to %s: %w", o.In, err)
	}
	return r.run(ctx)
}

// countReports ends when the producer is closed.
func (r *confluentRun) countReports() {
	for ev := range r.p.Events() {
		var err error
		acked := int64(0)
		switch e := ev.(type) {
		case *ck.Message:
			acked, err = 1, e.TopicPartition.Error
		case ck.Error:
			if e.IsFatal() {
				err = e
			}
		}
		r.mu.Lock()
		if r.failed == nil {
			r.failed = err
		}
		r.acked += acked
		if r.acked == r.waited {
			r.all.Signal()
		}
		r.mu.Unlock()
	}
}

func (r *confluentRun) run(ctx context.Context) error {
	due := time.Now().Add(r.CommitInterval)
	for n := 0; ; n++ {
		end := ctx.Err() != nil || r.Until > 0 && r.meter.processed.Load() >= r.Until
		// Looking at the clock for each record would be waste.
		if (end || n%64 == 0) && len(r.next) > 0 && (end || !time.Now().Before(due)) {
			if err := r.commit(); err != nil {
				return err
			}
			due = time.Now().Add(r.CommitInterval)
		}
		if end {
			return nil
		}
		switch e := r.c.Poll(20).(type) {
		case *ck.Message:
			if err := r.one(e); err != nil {
				return err
			}
		case ck.Error:
			if e.IsFatal() || e.Code() == ck.ErrUnknownTopicOrPart {
				return fmt.Errorf("poll: %w", e)
			}
		case nil: // nothing came for a while
			n = -1
		}
	}
}

func (r *confluentRun) one(in *ck.Message) error {
	if err := in.TopicPartition.Error; err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	partition := in.TopicPartition.Partition
	count := r.counts.add(partition, in.Key, in.Timestamp.UnixMilli())
	r.next[partition] = in.TopicPartition.Offset + 1
	r.meter.begin()
	r.meter.processed.Add(1)
	return r.produce(&ck.Message{TopicPartition: ck.TopicPartition{Topic: &r.Out, Partition: partition}, Key: in.Key, Value: text(count), Timestamp: in.Timestamp})
}

// produce waits while the queue is full.
func (r *confluentRun) produce(m *ck.Message) error {
	for {
		err := r.p.Produce(m, nil)
		if err == nil {
			r.sent++
			return nil
		}
		var e ck.Error
		if !errors.As(err, &e) || e.Code() != ck.ErrQueueFull {
			return fmt.Errorf("write to %s-%d: %w", *m.TopicPartition.Topic, m.TopicPartition.Partition, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *confluentRun) commit() error {
	err := r.counts.takeChanged(func(x *cell) error {
		return r.produce(&ck.Message{TopicPartition: ck.TopicPartition{Topic: &r.changelog, Partition: x.partition}, Key: x.key, Value: x.value(), Timestamp: time.UnixMilli(x.timestamp)})
	})
	if err != nil {
		return err
	}
	var offsets []ck.TopicPartition
	for partition, next := range r.next {
		offsets = append(offsets, ck.TopicPartition{Topic: &r.In, Partition: partition, Offset: next})
	}
	clear(r.next)
	if r.ExactlyOnce() {
		err = r.commitTransaction(offsets)
	} else if err = r.awaitReports(); err == nil {
		_, err = r.c.CommitOffsets(offsets)
	}
	err = errors.Join(err, r.failure())
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	r.meter.committed()
	return nil
}

// awaitReports waits until everything sent is acknowledged. The library's own Flush looks
// only every 100 ms.
func (r *confluentRun) awaitReports() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waited = r.sent
	for r.acked < r.waited {
		r.all.Wait()
	}
	return r.failed
}

func (r *confluentRun) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *confluentRun) commitTransaction(offsets []ck.TopicPartition) error {
	ctx := context.Background()
	group, err := r.c.GetConsumerGroupMetadata()
	if err != nil {
		return fmt.Errorf("group metadata: %w", err)
	}
	if err := r.p.SendOffsetsToTransaction(ctx, offsets, group); err != nil {
		return fmt.Errorf("send offsets: %w", err)
	}
	if err := r.p.CommitTransaction(ctx); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	if err := r.p.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return nil
}
