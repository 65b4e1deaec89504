//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// Host is state for the loop of one *kafka.Consumer, which it has made.
type Host struct {
	host     *embedded.Host
	consumer *ck.Consumer
	log      *slog.Logger

	mu sync.Mutex
	// fetched are the partitions that the consumer is assigned; cooperative says how to change that.
	fetched     map[kafka.TopicPartition]bool
	cooperative bool
	begun       bool // since the last assignment
	waits       bool // restores are waited for in the callback
	answered    bool // a rebalance, since drain looked
	closing     bool // nothing is asked of the consumer any more (D4); set by Close, which may read it without mu
}

// Open makes a consumer from its own configuration, and state beside it. What cannot go together with state is refused
// with the reason (enable.auto.commit=true, for one); auto.offset.reset says where a group without offsets
// begins. The state directory is locked until Close.
func Open(ctx context.Context, consumer *ck.ConfigMap, cfg embedded.Config) (_ *Host, err error) {
	s, err := read(consumer)
	if err != nil {
		return nil, err
	}
	h := &Host{log: cfg.Logger, fetched: map[kafka.TopicPartition]bool{}}
	if h.log == nil {
		h.log = slog.Default()
	}
	if s.incoming { // the broker waits for the whole assignment to be taken up
		cfg.RestoreInCallback = true
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h.waits = cfg.RestoreInCallback
	if h.consumer, err = ck.NewConsumer(&s.conf); err != nil {
		return nil, fmt.Errorf("make the consumer: %w", err)
	}
	h.host, err = embedded.Open(ctx, embedded.Consumer{
		Client: confluent.Client{Config: s.rest}, Settings: kafka.Settings{Brokers: s.brokers, ClientID: cfg.App, Logger: cfg.Logger},
		Group: s.group, Start: s.start, Topics: h.topics, Subscribed: func() bool { return len(h.subscription()) > 0 }, Member: func() (kafka.Member, error) { return confluent.GroupMember(h.consumer) },
		Begin: h.begin, BeginLocked: true, Seek: h.seek, Stop: h.stop}, cfg)
	if err != nil {
		return nil, errors.Join(err, h.consumer.Close())
	}
	return h, nil
}

// topics gives the topics that the consumer is subscribed to by name.
func (h *Host) topics() []string {
	return slices.DeleteFunc(h.subscription(), func(name string) bool { return strings.HasPrefix(name, "^") })
}

// subscription gives the topics that the consumer is subscribed to, and the patterns.
func (h *Host) subscription() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || h.consumer.IsClosed() {
		return nil
	}
	topics, err := h.consumer.Subscription()
	if err != nil {
		return nil
	}
	return topics
}

// Consumer is the one that was made. Subscribe it with [Host.Rebalance], and poll it. Poll and [Host.Close] must be on one goroutine.
func (h *Host) Consumer() *ck.Consumer { return h.consumer }

// Process runs fn for a message of the consumer. What fn writes and the message's position are committed
// together, or not at all. With an error of fn everything since the last commit is dropped, and the consumer is
// set back to there: Process gives the error, with task, topic, partition and offset. A message that is in the state already is left out
// without a call of fn.
func (h *Host) Process(m *ck.Message, fn func(*embedded.Task) error) error {
	switch {
	case m == nil || m.TopicPartition.Topic == nil:
		return errors.New("process: no message: give it only what Poll gave as a *kafka.Message")
	case m.TopicPartition.Error != nil:
		return fmt.Errorf("process: this is not a message, but an error of %s: %w", m.TopicPartition, m.TopicPartition.Error)
	}
	if err := h.Err(); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	r := kafka.Record{Topic: *m.TopicPartition.Topic, Partition: m.TopicPartition.Partition, Offset: int64(m.TopicPartition.Offset),
		Timestamp: m.Timestamp.UnixMilli(), Key: m.Key, Value: m.Value}
	return h.host.Process(&r, fn)
}

// Assign takes these partitions without a subscription, as the consumer's own Assign does, but at the offsets of their state. It
// replaces the assignment before: what is not in the list is committed and closed. With several topics, give the partition of each. No group sees to it that a
// partition has one process: the last to take it has it, and the host of the one before stops with [embedded.ErrTaken].
func (h *Host) Assign(ctx context.Context, list []ck.TopicPartition) error {
	if err := h.Err(); err != nil {
		return fmt.Errorf("assign partitions: %w", err)
	}
	topics, err := h.consumer.Subscription()
	if err != nil {
		return fmt.Errorf("assign partitions: %w", err)
	}
	if len(topics) > 0 {
		return fmt.Errorf("assign partitions: the consumer is subscribed to %v: it is either subscribed or assigned by hand", topics)
	}
	h.mu.Lock()
	h.cooperative = true // such a consumer takes partitions one by one
	h.mu.Unlock()
	return h.host.Assign(ctx, partitions(list))
}

// Commit commits what was processed and returns when that is done. Commits also come by themselves.
func (h *Host) Commit(ctx context.Context) error { return h.host.Commit(ctx) }

// Err is nil while the host works; look at it in the loop's condition.
func (h *Host) Err() error {
	if err := h.host.Err(); err != nil {
		return err
	}
	if h.consumer.IsClosed() {
		return errors.New("the consumer was closed: leave that to the host's Close")
	}
	return nil
}

// Context gives a context that ends with ctx, and when the host fails or is closed: a poll that waits without a bound needs it.
func (h *Host) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return h.host.Context(ctx)
}

// Ready gives the partitions whose state is here.
func (h *Host) Ready() []kafka.TopicPartition { return h.host.Ready() }

// Offsets tells how far each task is on this host, also those that run elsewhere and have only a directory here.
func (h *Host) Offsets() []offsetcache.Task { return h.host.Offsets() }

// Scan is what the reading of the task directories in Open found.
func (h *Host) Scan() *offsetcache.Scan { return h.host.Scan() }

// Lags gives for each partition what this host would have to restore of each store to take it over.
func (h *Host) Lags(ctx context.Context) (map[int32][]offsetcache.Lag, error) {
	return h.host.Lags(ctx)
}

// Status gives a snapshot of tasks and commits.
func (h *Host) Status() task.Status { return h.host.Status() }

// StoreStats tells how the task stores use memory, and how often their caches answer.
func (h *Host) StoreStats() statestore.ResourceStats { return h.host.StoreStats() }

// SetCacheBytes changes how much memory the tasks may together use for values that they have read or written, at any time.
func (h *Host) SetCacheBytes(n int64) { h.host.SetCacheBytes(n) }

// Snapshot puts a snapshot of each task store that is open here below dir, while the loop goes on: see [embedded.Host.Snapshot].
func (h *Host) Snapshot(ctx context.Context, dir string) error { return h.host.Snapshot(ctx, dir) }

// closeWithin bounds the close of a consumer, which waits for its group to be left, and for nothing that takes long. It has that time
// whatever is left of the context: one that is left behind stays in its group until the session is over.
const closeWithin = 10 * time.Second

// Close commits, closes stores and then the consumer. Call it on the goroutine that polls, when the loop has ended.
// A consumer that does not end in 10 s (one with a fatal error never does) is left behind, which the error says.
func (h *Host) Close(ctx context.Context) error {
	err := h.host.Close(ctx)
	if h.closing || h.consumer.IsClosed() {
		return err
	}
	h.drain()
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	return errors.Join(err, confluent.CloseConsumer(ctx, h.consumer))
}
