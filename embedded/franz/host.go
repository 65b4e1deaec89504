package franz

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// Host is state for the loop of one *kgo.Client, which it has made.
type Host struct {
	host   *embedded.Host
	client *kgo.Client
	said   options
	log    *slog.Logger
	opened chan struct{} // closed when host is set, or never will be
}

// Open makes a client from its own options, and state beside it. The options name a group
// (kgo.ConsumerGroup) and topics, or no topics, and then [Host.Assign] has to follow; kgo.ConsumeStartOffset (AtStart or AtEnd) says where a group without offsets begins. A
// position outside the log is an error of the fetches, never a reset. Records are read committed; kgo.ReadUncommitted is refused.
// Rebalance callbacks among them are called too: after the host's own in an assignment, before
// them in a revoke. Automatic commits are switched off, and options for them are refused. The state directory is
// locked until Close.
func Open(ctx context.Context, opts []kgo.Opt, cfg embedded.Config) (_ *Host, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Host{log: cfg.Logger, opened: make(chan struct{})}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.said, err = read(opts); err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	all := append(append([]kgo.Opt{}, opts...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if h.said.byHand {
		all = append(all, kgo.ConsumerGroup(""), kgo.OnPartitionsAssigned(nil), kgo.OnPartitionsRevoked(nil), kgo.OnPartitionsLost(nil))
	} else {
		all = append(all, kgo.DisableAutoCommit(), kgo.OnPartitionsAssigned(h.assigned), kgo.OnPartitionsRevoked(h.revoked), kgo.OnPartitionsLost(h.lost))
	}
	if h.client, err = kgo.NewClient(all...); err != nil {
		if h.said.byHand {
			err = fmt.Errorf("%w (without topics, partitions are assigned by hand: options of a group have no place then, but for its name)", err)
		}
		return nil, fmt.Errorf("client options: %w", err)
	}
	host, err := embedded.Open(ctx, embedded.Consumer{Client: franz.Client{Options: h.said.shared},
		Settings: kafka.Settings{Brokers: h.said.brokers, ClientID: cfg.App, Logger: cfg.Logger},
		Group:    h.said.group, Start: h.said.start, Topics: h.client.GetConsumeTopics, Subscribed: func() bool { return !h.said.byHand && h.client.Context().Err() == nil }, Member: h.member, Begin: h.begin, Seek: h.seek, Stop: h.stop}, cfg)
	if err == nil {
		h.host = host
	}
	close(h.opened) // the client joins its group at once; its callbacks wait for this
	if err != nil {
		closing, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return nil, errors.Join(err, h.closeClient(closing))
	}
	return h, nil
}

// Client is the one that was made. Poll it with PollFetches or PollRecords, and give every record to [Host.Process].
func (h *Host) Client() *kgo.Client { return h.client }

// Process runs fn for a record of the client. What fn writes and the record's position are committed
// together, or not at all. With an error of fn everything since the last commit is dropped, and the client is set
// back to there: Process gives the error, with task, topic, partition and offset. A record that is in the state already, or
// that will come again, is left out without a call of fn.
func (h *Host) Process(r *kgo.Record, fn func(*embedded.Task) error) error {
	if r == nil {
		return errors.New("process: no record")
	}
	if err := h.Err(); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	k := kafka.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	return h.host.Process(&k, fn)
}

// Assign takes these partitions without a group, at the offsets of their state. It replaces the assignment before: what is not
// in the map is committed and closed. With several topics, give the partition of each. The client was made
// without topics. No group sees to it that a partition has one process: the last to take it has it, and the host of the one
// before stops with [embedded.ErrTaken].
func (h *Host) Assign(ctx context.Context, list map[string][]int32) error {
	if !h.said.byHand {
		return errors.New("assign partitions: the client is a member of its group: leave kgo.ConsumeTopics out where partitions are assigned by hand")
	}
	return h.host.Assign(ctx, partitions(list))
}

// Commit commits what was processed and returns when that is done. Commits also come by themselves.
func (h *Host) Commit(ctx context.Context) error { return h.host.Commit(ctx) }

// Err is nil while the host works; look at it in the loop's condition.
func (h *Host) Err() error {
	if err := h.host.Err(); err != nil {
		return err
	}
	if h.client.Context().Err() != nil {
		return errors.New("the client was closed: leave that to the host's Close")
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

// Close commits, closes stores and then the client.
func (h *Host) Close(ctx context.Context) error {
	return errors.Join(h.host.Close(ctx), h.closeClient(ctx))
}

func (h *Host) closeClient(ctx context.Context) error {
	closed := make(chan struct{})
	go func() { // ended below, but for a client that does not end
		defer close(closed)
		h.client.CloseAllowingRebalance()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the client: %w", ctx.Err())
	}
}
