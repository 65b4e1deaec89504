package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
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

// Conflict is a choice for a store and offsets that cannot both be right.
type Conflict = task.Conflict

// The choices beside the default, which is to stop.
const (
	// AcceptReset goes on at the group's offsets, with the state as it is.
	AcceptReset = task.AcceptReset
	// UseStore goes on where the store stands.
	UseStore = task.UseStore
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
// the record; an error stops the task. partitionTime is the largest time of the record's
// partition so far; the zero time if there is none.
type TimestampExtractor func(r *kafka.Record, partitionTime time.Time) (time.Time, error)

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
	// OnConflict says what a task does when its store and the group's offsets cannot both be
	// right: after a reset of offsets, or a broker that lost data. Default: it stops and says what
	// is the matter. The choice can also be made for one start: tidemark offsets.
	OnConflict Conflict
	// OnTaskFailure says what the failure of one task means for the others: a record that cannot be decoded or
	// processed, a panic, a store that fails, a record that is too large. Default StopApp. With KeepOthers Run returns
	// the failures when the application is closed, or when no task is left. (Damage of a store that is
	// found while it runs is no failure: the store is set aside and restored.)
	OnTaskFailure OnTaskFailure
	// TaskFailureListener is told of each task that failed while the others go on, from the goroutine of its worker.
	// It must not block, nor call Close.
	TaskFailureListener func(id processor.TaskID, err error)
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
	// TopicInterval is how often the application looks whether its topics are still the same.
	// One that was deleted, created again or, as an input, given more partitions ends the application
	// with an error. Default 30 s.
	TopicInterval time.Duration
	// InstanceID is the static member's name in the group. Default: the process id kept in the
	// state directory, so that a restart takes its place back at once.
	InstanceID string
	// Store tunes the state stores.
	Store StoreConfig
	// Migration says how state that another program left in the state directory is to be read:
	// its guarantee, whether it was closed cleanly, which topics are changelogs. It is taken over
	// at start by itself; App, Specs, Held, Resources and Logger are set by the App.
	Migration migration.Options
	// CleanupDelay is after how long the directory of a task that runs elsewhere is removed.
	// Default 10 minutes; negative: never.
	CleanupDelay time.Duration
	// StateListener is called at every change of the state, from a goroutine of the app. It
	// must not block, nor call Close.
	StateListener func(from, to State)
	// ScanListener is told how far the scan of the task directories at the start is, about once a second and at its end. It
	// must not block.
	ScanListener func(offsetcache.ScanProgress)
	// RestoreListener is told when the restore of a store begins, goes on (at most once a second), ends or is
	// suspended. It is called from the goroutine that restores, for several tasks perhaps at once: it must not block.
	// The numbers are also in [App.Status].
	RestoreListener task.RestoreListener
	// Logger takes what the application has to say; the clients' details come at debug level.
	// Default slog.Default().
	Logger *slog.Logger
	// Now is the wall clock. Default time.Now.
	Now func() time.Time
}

// StoreConfig tunes the state stores of a process. The zero value is the default.
type StoreConfig struct {
	// Resources sizes what all tasks of the process share: statestore.SmallContainer(),
	// statestore.BigHost(), or sizes of one's own. The zero value suits some dozens of tasks.
	Resources statestore.ResourceOptions
	// BlockCacheBytes is for the cache of database blocks. 0 = what Resources says (default 64 MiB).
	BlockCacheBytes int64
	// CacheBytes is the memory that all tasks together may use for values that they have read or
	// written; it is shared by need. 0 = what Resources says (default 256 MiB). See
	// [App.SetCacheBytes] for changing it at run time.
	CacheBytes int64
	// Caching makes all tables that keep their rows hold their updates back until the commit: see
	// [Materialized].Caching, which can differ for one table. Default: every update is sent on.
	Caching bool
	// CachingMaxEntries is how many rows of one table of one task hold an update back at most; at more
	// they are sent on before the commit. Their bytes are bounded with the other uncommitted writes,
	// by Limits.MaxDirtyBytes. 0 = 50,000.
	CachingMaxEntries int
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
	if c.OnConflict > UseStore {
		bad("OnConflict is %d: use AcceptReset or UseStore", c.OnConflict)
	}
	if c.OnTaskFailure > KeepOthers {
		bad("OnTaskFailure is %d: use StopApp or KeepOthers", c.OnTaskFailure)
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
	}{{"CommitInterval", c.CommitInterval}, {"SessionTimeout", c.SessionTimeout}, {"TransactionTimeout", c.TransactionTimeout}, {"StartTimeout", c.StartTimeout}, {"TopicInterval", c.TopicInterval}, {"Store.SyncInterval", c.Store.SyncInterval}} {
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
	if c.Store.CachingMaxEntries < 0 {
		bad("Store.CachingMaxEntries is %d: it must not be negative", c.Store.CachingMaxEntries)
	}
	if err := c.Migration.Validate(); err != nil {
		bad("Migration: %w", err)
	}
	if err := c.Store.Resources.Validate(); err != nil {
		bad("Store.Resources: %w", err)
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
	def(&c.TopicInterval, 30*time.Second)
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
