package pebbledb

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options is how to open a database. All fields must be set.
type Options struct {
	FS           vfs.FS
	Resources    *Resources
	Log          *slog.Logger
	MemTableSize uint64
	// Create a database; without it one must be there.
	Create bool
	// WrapFailure makes of the first failure the error that every later call returns.
	WrapFailure func(error) error
	// CloseTimeout is how long Close waits for a failed database before it is left behind.
	CloseTimeout time.Duration
}

// Replay is what Open found in the write-ahead log.
type Replay struct {
	Keys, Batches int64
	// Bytes of the logs read.
	Bytes int64
}

// DB is an open database.
type DB struct {
	db     *pebble.DB
	o      Options
	latch  *latch
	sched  *scheduler
	replay Replay
	opened atomic.Bool
	ended  atomic.Bool
	left   atomic.Bool // behind
}

// Open opens (or with Create makes) the database in dir.
func Open(dir string, o Options) (*DB, error) {
	d := &DB{o: o, latch: newLatch(), sched: &scheduler{l: o.Resources.limit}}
	opened := make(chan *pebble.DB, 1)
	left, err := d.await("open", func() error {
		db, err := pebble.Open(dir, d.pebbleOptions())
		if err == nil {
			opened <- db
		}
		return err
	})
	if left {
		d.leaveBehind()
	}
	if err != nil {
		return nil, classify(err)
	}
	d.db = <-opened
	d.opened.Store(true)
	o.Resources.users.Add(1)
	return d, nil
}

func (d *DB) pebbleOptions() *pebble.Options {
	po := &pebble.Options{
		FS:                          &parkFS{FS: d.o.FS, opened: &d.opened, report: d.fail},
		Cache:                       d.o.Resources.blocks,
		FileCache:                   d.o.Resources.files,
		FormatMajorVersion:          pebble.FormatNewest,
		ErrorIfNotExists:            !d.o.Create,
		ErrorIfExists:               d.o.Create,
		MemTableSize:                d.o.MemTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		Logger:                      d.fatalLogger(),
		EventListener: &pebble.EventListener{
			BackgroundError: d.backgroundError,
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				d.fail(fmt.Errorf("%w: %s: %w", ErrCorrupt, i.Path, i.Details), broken)
			},
		},
	}
	po.Experimental.CompactionScheduler = d.sched
	return po
}

// backgroundError ends the database at the first error of a flush or compaction: Pebble
// would try again for ever, some hundred times a second, also after it was left behind.
func (d *DB) backgroundError(err error) {
	d.fail(fmt.Errorf("background work: %w", classify(err)), broken)
	if d.left.Load() {
		select {}
	}
}

func (d *DB) fatalLogger() *logger {
	return &logger{log: d.o.Log, latch: d.latch, info: d.noteReplay}
}

// noteReplay reads Pebble's report on a log: it has no event for it.
func (d *DB) noteReplay(format string, args []any) {
	if !strings.Contains(format, "stopped reading at offset") || len(args) != 5 {
		return
	}
	keys, ok1 := args[3].(int64)
	batches, ok2 := args[4].(int64)
	if ok1 && ok2 && batches > 0 {
		d.replay.Keys += keys
		d.replay.Batches += batches
		if o, ok := args[2].(interface{ String() string }); ok {
			var name string
			var at int64
			if _, err := fmt.Sscanf(strings.TrimPrefix(o.String(), "("), "%s %d", &name, &at); err == nil {
				d.replay.Bytes += at
			}
		}
	}
}

// Replay tells what Open replayed.
func (d *DB) Replay() Replay { return d.replay }

// fail closes the latch.
func (d *DB) fail(err error, level severity) {
	if d.latch.fail(err, level) {
		d.o.Log.Error("task store failed", "error", err)
	}
}

// Err is the failure as every call returns it, nil while there is none.
func (d *DB) Err() error {
	select {
	case <-d.latch.closed:
		_, err := d.latch.state()
		return d.o.WrapFailure(err)
	default:
		return nil
	}
}

// Failed is closed at the first failure.
func (d *DB) Failed() <-chan struct{} { return d.latch.closed }

// Read runs fn, which may only read, on the caller's goroutine. Any error that it returns
// fails the database.
func (d *DB) Read(op string, fn func(*pebble.DB) error) error {
	if err := d.Err(); err != nil {
		return err
	}
	panicked, err := guardRead(op, func() error { return fn(d.db) })
	return d.outcome(op, err, panicked)
}

// EndRead closes an iterator, also one of a database that has failed: without that it
// could not be closed. It returns the iterator's error too.
func (d *DB) EndRead(op string, it *pebble.Iterator) error {
	if level, _ := d.latch.state(); level == fatal {
		return d.Err()
	}
	panicked, err := guardRead(op, func() error { return errors.Join(it.Error(), it.Close()) })
	if failed := d.Err(); failed != nil {
		return failed
	}
	return d.outcome(op, err, panicked)
}

// Write runs fn, which may block on Pebble's locks or on the disk, and waits for it or
// for the latch. Any error fails the database.
func (d *DB) Write(op string, fn func(*pebble.DB) error) error {
	if err := d.Err(); err != nil {
		return err
	}
	_, err := d.await(op, func() error { return fn(d.db) })
	if f := d.Err(); f != nil {
		return f // the first cause, or what await has just made of err
	}
	return err
}

// await runs fn on a goroutine of its own, which it leaves behind if the latch closes.
func (d *DB) await(op string, fn func() error) (left bool, err error) {
	done := make(chan error, 1)
	go func() {
		panicked, err := guard(op, fn)
		if d.opened.Load() {
			err = d.outcome(op, err, panicked)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return false, err
	case <-d.latch.closed:
		select {
		case err := <-done:
			return false, err
		default:
		}
		_, err := d.latch.state()
		return true, err
	}
}

func (d *DB) outcome(op string, err error, panicked bool) error {
	if err == nil {
		return nil
	}
	level := broken
	if panicked {
		level = fatal
	} else {
		err = fmt.Errorf("%s: %w", op, err)
	}
	d.fail(classify(err), level)
	return d.Err()
}

// classify joins ErrCorrupt to errors that mean damaged or missing files.
func classify(err error) error {
	switch {
	case errors.Is(err, ErrCorrupt):
		return err
	case pebble.IsCorruptionError(err),
		errors.Is(err, pebble.ErrDBDoesNotExist),
		errors.Is(err, fs.ErrNotExist),
		strings.Contains(err.Error(), "object size mismatch"): // a truncated table: Pebble has no mark for it
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// Close closes the database. A failed one is left behind if closing it does not work at
// once; then its lock stays, and the directory can be opened again only by another
// process. The error is nil also for a failed database: its failure was reported before.
func (d *DB) Close() error {
	if d.ended.Swap(true) {
		return nil
	}
	defer d.o.Resources.users.Add(-1)
	before, _ := d.latch.state()
	if before == fatal {
		d.leaveBehind()
		return nil
	}
	done := make(chan error, 1)
	go func() {
		panicked, err := guard("close", d.db.Close)
		if panicked {
			d.fail(err, fatal)
		}
		done <- err
	}()
	closed, err := d.awaitClose(done)
	now, _ := d.latch.state()
	if !closed || now == fatal {
		d.leaveBehind()
	}
	switch {
	case before != 0:
		return nil
	case now != 0:
		return d.Err()
	case err != nil:
		return fmt.Errorf("close: %w", classify(err))
	}
	return nil
}

// awaitClose waits as long as it takes, but only CloseTimeout once the database has failed.
func (d *DB) awaitClose(done <-chan error) (closed bool, err error) {
	select {
	case err := <-done:
		return true, err
	case <-d.latch.closed:
	}
	t := time.NewTimer(d.o.CloseTimeout)
	defer t.Stop()
	select {
	case err := <-done:
		return true, err
	case <-t.C:
		return false, nil
	}
}

func (d *DB) leaveBehind() {
	abandoned.Add(1)
	d.left.Store(true)
	d.o.Resources.leaked.Store(true)
	d.sched.abandon()
}
