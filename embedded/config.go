package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
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
	// AtLeastOnce: outputs are delivered before their commit; a crash may repeat those of one
	// commit interval.
	AtLeastOnce = task.AtLeastOnce
	// ExactlyOnce: what [Task.Send] writes is in the commit's transaction.
	ExactlyOnce = task.ExactlyOnce
)

// Config is what the consumer's own configuration does not say. App, StateDir and Stores are
// needed; the zero value of every other field is its default.
type Config struct {
	// App is the prefix of changelogs and transactional ids, and a folder in StateDir.
	App string
	// StateDir is the folder for state. Every process needs its own.
	StateDir string
	// Stores are those that the function given to Process may use.
	Stores []processor.StoreDef
	// Topics are the input topics. Default: the one topic that is assigned first. Several have the same
	// number of partitions, and partition n of all of them makes one task: subscribe to exactly these, with an
	// assignor that keeps them together (range).
	Topics []string

	// Guarantee for what [Task.Send] writes. Default AtLeastOnce.
	Guarantee Guarantee
	// Outputs are the topics that [Task.Send] may write. They must exist.
	Outputs []string
	// Limits bound a commit interval (default 100 ms).
	Limits task.Limits
	// OnConflict says what to do when a store and the group's offsets cannot both be right. Default:
	// stop, and say what is the matter.
	OnConflict task.Conflict
	// RestoreInCallback has the assign callback return only when the stores are restored. The default is
	// to restore in the background while the loop goes on; the partition's messages come when it is done. With it a restore
	// must be shorter than max.poll.interval.ms, or the rebalance timeout: else the group drops the member, which takes part again
	// when it is done.
	RestoreInCallback bool
	// RevokeTimeout bounds the commit in a revoke callback. Default 5 s.
	RevokeTimeout time.Duration
	// TransactionTimeout is after how long the broker aborts a commit that does not end. Default 10 s.
	TransactionTimeout time.Duration
	// Replication is the replication factor of changelogs. Default: the brokers'.
	Replication int
	// Migration says how state that another program left in StateDir is to be read: its guarantee, whether it
	// was closed cleanly. It is taken over by Open; App, Specs, Own, Held, Resources and Logger are set by the host.
	Migration migration.Options
	// CleanupDelay is after how long the directory of a task that runs elsewhere is removed. Default 10 minutes; negative:
	// never.
	CleanupDelay time.Duration
	// Resources sizes what all tasks of the process share. See [Host.SetCacheBytes] for changing its CacheBytes at run time.
	Resources statestore.ResourceOptions
	// SyncInterval bounds how far the disk may be behind the last commit. Default 1 s.
	SyncInterval time.Duration
	// SyncEveryCommit makes every commit wait for the disk.
	SyncEveryCommit bool
	// Debug checks at every use of a [Task], and of a store that it gave, that it happens in the call of the function
	// given to Process which opened it, and on its goroutine; a use elsewhere is an error that says so. It costs about a
	// microsecond a use, and nothing when it is off.
	Debug bool
	// ScanListener is told how far the scan of the task directories at Open is, about once a second and at its end. It must
	// not block.
	ScanListener func(offsetcache.ScanProgress)
	// RestoreListener is told of the restore of each store, from the goroutine that restores: it must
	// not block. The numbers are also in [Host.Status].
	RestoreListener task.RestoreListener
	// Logger. Default slog.Default().
	Logger *slog.Logger
}

// Validate reports every problem at once, each with the field's name.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if err := statedir.ValidateAppID(c.App); err != nil {
		bad("App: %w", err)
	}
	if c.StateDir == "" {
		bad("StateDir is missing")
	}
	if len(c.Stores) == 0 {
		bad("Stores is empty: name the handles that the function given to Process uses")
	}
	for i, s := range c.Stores {
		if s == nil {
			bad("Stores[%d] is nil", i)
			continue
		}
		if d := s.Definition(); c.Guarantee == ExactlyOnce {
			if err := d.CheckExactlyOnce(); err != nil {
				bad("Stores[%d]: %w", i, err)
			}
		}
	}
	if c.Guarantee != AtLeastOnce && c.Guarantee != ExactlyOnce {
		bad("Guarantee is %d: use AtLeastOnce or ExactlyOnce", c.Guarantee)
	}
	if c.OnConflict > task.UseStore {
		bad("OnConflict is %d: use task.Stop, task.AcceptReset or task.UseStore", c.OnConflict)
	}
	if c.Limits.MaxTaskIdle != 0 {
		bad("Limits.MaxTaskIdle is %v: it has no effect, the order of records is that of your loop", c.Limits.MaxTaskIdle)
	}
	if c.RevokeTimeout < 0 || c.TransactionTimeout < 0 {
		bad("RevokeTimeout is %v and TransactionTimeout %v: they must not be negative", c.RevokeTimeout, c.TransactionTimeout)
	}
	if c.SyncInterval < 0 {
		bad("SyncInterval is %v: it must not be negative", c.SyncInterval)
	}
	if c.Replication < 0 || c.Replication > 1<<15-1 {
		bad("Replication is %d: it must not be negative", c.Replication)
	}
	if err := c.Limits.Validate(); err != nil {
		bad("Limits: %w", err)
	}
	if err := c.Migration.Validate(); err != nil {
		bad("Migration: %w", err)
	}
	if err := c.Resources.Validate(); err != nil {
		bad("Resources: %w", err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("embedded config: %w", err)
	}
	return nil
}

func (c *Config) defaults() {
	c.Limits.Defaults()
	if c.RevokeTimeout == 0 {
		c.RevokeTimeout = 5 * time.Second
	}
	if c.TransactionTimeout == 0 {
		c.TransactionTimeout = 10 * time.Second
	}
	if c.CleanupDelay == 0 {
		c.CleanupDelay = 10 * time.Minute // Kafka Streams' state.cleanup.delay.ms
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}
