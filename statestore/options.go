package statestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options is how to open a task store. The zero value is good.
type Options struct {
	// Engine keeps the rows: on disk, or in memory.
	Engine Engine
	// Resources is what all task stores of the process share; nil = a small set of its own,
	// for this store alone.
	Resources *Resources
	// FS is the file system; nil = the operating system's. For tests; see [MemoryFS].
	FS vfs.FS
	// Logger takes warnings and failures, and at debug level what the database does; nil = slog.Default().
	Logger *slog.Logger
	// SyncInterval bounds how long a commit may stay in memory buffers: that long after the
	// first unsynced one the log is synced in the background. 0 = 1 s.
	SyncInterval time.Duration
	// SyncEveryCommit makes every commit wait for the disk.
	SyncEveryCommit bool
	// MaxDirtyBytes is where [TaskStore.NeedsCommit] begins to say so. 0 = 16 MiB.
	MaxDirtyBytes int
	// CacheBytes bounds how much memory clean values may take, kept across commits, out of what
	// [Resources] have for all task stores (32 MiB without Resources). 0 = no bound of its own;
	// negative = as little as possible.
	CacheBytes int
	// MemTableBytes is the size of the database's memtable. What is in it is replayed after a
	// crash, 8 ms per MiB. 0 = 4 MiB, or less where many task stores share Resources: two
	// memtables for each of them fit into their MemTableBytes, down to 256 KiB.
	MemTableBytes int

	closeTimeout      time.Duration // 0 = 2 s
	stallAfter        time.Duration // 0 = 5 s
	hangTimeout       time.Duration // 0 = 30 s
	migrateBatchBytes int           // 0 = 4 MiB
}

// Engine is what keeps a task store's rows.
type Engine uint8

const (
	// Pebble is a database in the task store's directory: the default.
	Pebble Engine = iota
	// Memory keeps everything in memory, for tests and the test driver: no directory, no
	// goroutine; a task store is empty at every Open. (For one store of a task on disk that is
	// to be in memory, see [Spec.InMemory].)
	Memory
)

const (
	defaultSyncInterval  = time.Second
	defaultMaxDirtyBytes = 16 << 20
	defaultMemTableBytes = 4 << 20
	// How long Close waits for a database that has failed.
	defaultCloseTimeout = 2 * time.Second
)

// MemoryFS gives an empty file system in memory for Options.FS: for tests.
func MemoryFS() vfs.FS { return vfs.NewMem() }

// Validate reports every problem at once.
func (o Options) Validate() error {
	var errs []error
	if o.Engine > Memory {
		errs = append(errs, fmt.Errorf("engine %d is unknown", o.Engine))
	}
	if o.SyncInterval < 0 {
		errs = append(errs, fmt.Errorf("SyncInterval %v is negative", o.SyncInterval))
	}
	if o.MaxDirtyBytes < 0 || o.MaxDirtyBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("MaxDirtyBytes %d is not between 0 and 1 GiB", o.MaxDirtyBytes))
	}
	if o.MemTableBytes != 0 && (o.MemTableBytes < 256<<10 || o.MemTableBytes > 1<<30) {
		errs = append(errs, fmt.Errorf("MemTableBytes %d is not between 256 KiB and 1 GiB", o.MemTableBytes))
	}
	if len(errs) > 0 {
		return fmt.Errorf("task store options: %w", errors.Join(errs...))
	}
	return nil
}

func (o Options) mostCacheBytes() int64 {
	if o.CacheBytes == 0 {
		return wantsAll
	}
	return int64(max(o.CacheBytes, 0))
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		// Not nil for Pebble: it would add disk-health tickers for every database.
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = defaultSyncInterval
	}
	if o.MaxDirtyBytes == 0 {
		o.MaxDirtyBytes = defaultMaxDirtyBytes
	}
	if o.migrateBatchBytes == 0 {
		o.migrateBatchBytes = defaultMigrateBatchBytes
	}
	if o.closeTimeout == 0 {
		o.closeTimeout = defaultCloseTimeout
	}
	return o
}
