package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// Guarantee says what a crash may do to outputs; state is exact in both.
type Guarantee = task.Guarantee

// The two guarantees.
const (
	// AtLeastOnce shows outputs at once; a crash may repeat those of one commit interval.
	AtLeastOnce = task.AtLeastOnce
	// ExactlyOnce writes outputs in the commit's transaction.
	ExactlyOnce = task.ExactlyOnce
)

// StartPosition says where a group that has no offsets begins to read. It is resolved once
// and committed before the first record is read.
type StartPosition struct {
	spec kafka.OffsetSpec
	set  bool
}

// Earliest begins with the first record that still exists. It is the default.
func Earliest() StartPosition { return StartPosition{kafka.Earliest, true} }

// Latest begins with the first record that arrives after the start.
func Latest() StartPosition { return StartPosition{kafka.LastStable, true} }

// StartAt begins with the first record at or after a time, and at the end if there is none.
func StartAt(t time.Time) StartPosition {
	return StartPosition{kafka.OffsetSpec(max(t.UnixMilli(), 0)), true}
}

// TimestampExtractor gives the time a record counts with. A negative time (before 1970) drops
// the record; an error stops the task. streamTime is the largest time the task has seen.
type TimestampExtractor func(r *kafka.Record, streamTime time.Time) (time.Time, error)

// Config configures an [App]. AppID, Brokers and StateDir are needed; the zero value of every
// other field is its default.
type Config struct {
	// AppID names the application: it is the consumer group, and the prefix of internal topics
	// and transactional ids. Letters, digits, '.', '_' and '-'.
	AppID string
	// Brokers are the bootstrap addresses, host:port.
	Brokers []string
	// StateDir is the folder for state; AppID is a folder in it. Every process needs its own.
	StateDir string

	// Guarantee for outputs. Default AtLeastOnce.
	Guarantee Guarantee
	// Client is the Kafka client. Default franz.Client{}; confluent.Client{} is the other.
	Client kafka.Client
	// Settings are passed to every client (TLS, SASL, compression, linger, buffers). Its
	// Brokers are taken from Brokers above.
	Settings kafka.Settings
	// Workers is the number of goroutines that run tasks, each with its own clients. More than
	// cores is no use. Default 1.
	Workers int
	// CommitInterval is the time between commits while there is something to commit: the
	// latency of each repartition hop, and of outputs under ExactlyOnce. Default 100 ms.
	CommitInterval time.Duration
	// Limits are the other bounds of a commit interval; its CommitInterval is taken from above.
	Limits task.Limits
	// Start is where a new group begins. Default Earliest.
	Start StartPosition
	// TimestampExtractor replaces the records' own timestamps. Default: the record's own, and
	// an error for a negative one.
	TimestampExtractor TimestampExtractor
	// Replication is the replication factor of internal topics. Default: the brokers'.
	Replication int
	// SessionTimeout is after how long a silent process loses its place. Default 10 s.
	SessionTimeout time.Duration
	// TransactionTimeout is after how long the broker aborts a commit that does not end; a
	// take-over from a dead process elsewhere waits at most so long. Default 10 s.
	TransactionTimeout time.Duration
	// StartTimeout bounds the time to reach a broker at start. Default 15 s.
	StartTimeout time.Duration
	// InstanceID is the static member's name in the group. Default: the process id kept in the
	// state directory, so that a restart takes its place back at once.
	InstanceID string
	// Store tunes the state stores.
	Store StoreConfig
	// StateListener is called at every change of the state, from a goroutine of the app. It
	// must not block, nor call Close.
	StateListener func(from, to State)
	// Logger takes what the application has to say; the clients' details come at debug level.
	// Default slog.Default().
	Logger *slog.Logger
	// Now is the wall clock. Default time.Now.
	Now func() time.Time
}

// StoreConfig tunes the state stores of a process. The zero value is the default.
type StoreConfig struct {
	// BlockCacheBytes is the cache of database blocks shared by all tasks. Default 64 MiB.
	BlockCacheBytes int64
	// CacheBytes is how much memory each task may use for values it has read or written.
	// Default 32 MiB.
	CacheBytes int
	// SyncInterval bounds how far the disk may be behind the last commit. Default 1 s.
	SyncInterval time.Duration
	// SyncEveryCommit makes every commit wait for the disk.
	SyncEveryCommit bool
}

// Validate reports every problem of the configuration at once, each with the field's name.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.AppID == "" {
		bad("AppID is missing")
	} else if err := statedir.ValidateAppID(c.AppID); err != nil {
		bad("AppID: %w", err)
	}
	if len(c.Brokers) == 0 {
		bad("Brokers is empty: at least one host:port is needed")
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			bad("Brokers: %q is not host:port: %w", b, err)
		}
	}
	if c.StateDir == "" {
		bad("StateDir is missing")
	}
	if c.Guarantee != AtLeastOnce && c.Guarantee != ExactlyOnce {
		bad("Guarantee is %d: use AtLeastOnce or ExactlyOnce", c.Guarantee)
	}
	if c.Workers < 0 || c.Workers > 1000 {
		bad("Workers is %d: it must be between 1 and 1000", c.Workers)
	}
	if c.Replication < 0 || c.Replication > 1<<15-1 {
		bad("Replication is %d: it must not be negative", c.Replication)
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"CommitInterval", c.CommitInterval}, {"SessionTimeout", c.SessionTimeout}, {"TransactionTimeout", c.TransactionTimeout}, {"StartTimeout", c.StartTimeout}, {"Store.SyncInterval", c.Store.SyncInterval}} {
		if d.v < 0 {
			bad("%s is %v: it must not be negative", d.name, d.v)
		}
	}
	if c.Store.BlockCacheBytes < 0 {
		bad("Store.BlockCacheBytes is %d: it must not be negative", c.Store.BlockCacheBytes)
	}
	if c.Store.CacheBytes < 0 {
		bad("Store.CacheBytes is %d: it must not be negative", c.Store.CacheBytes)
	}
	if c.Limits.CommitInterval != 0 && c.Limits.CommitInterval != c.CommitInterval {
		bad("Limits.CommitInterval is %v: it has no effect, set CommitInterval (%v)", c.Limits.CommitInterval, c.CommitInterval)
	}
	if err := c.Limits.Validate(); err != nil {
		bad("Limits: %w", err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("streams config: %w", err)
	}
	return nil
}

// defaults fills what is zero.
func (c *Config) defaults() {
	c.Workers = max(c.Workers, 1)
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.CommitInterval, 100*time.Millisecond)
	def(&c.SessionTimeout, 10*time.Second)
	def(&c.TransactionTimeout, 10*time.Second)
	def(&c.StartTimeout, 15*time.Second)
	c.Limits.CommitInterval = c.CommitInterval
	if !c.Start.set {
		c.Start = Earliest()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Settings.Brokers = c.Brokers
	if c.Settings.Logger == nil {
		c.Settings.Logger = c.Logger
	}
}
