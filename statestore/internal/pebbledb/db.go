package pebbledb

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options is how to open a database. All fields must be set, where nothing else is said.
type Options struct {
	FS           vfs.FS
	Resources    *Resources
	Log          *slog.Logger
	MemTableSize uint64
	// Create a database; without it one must be there.
	Create bool
	// ReadOnly opens a database without changing anything in its directory, not even by
	// replaying the log, which goes to memory. Only what reads may be called.
	ReadOnly bool
	// NoLog leaves the log out of what is read: only what was flushed is there.
	NoLog bool
	// BeforeReplay, if not nil, is called once before a log is replayed for reading, with an
	// upper bound of its bytes.
	BeforeReplay func(bytes int64) error
	// WrapFailure makes of the first failure the error that every later call returns.
	WrapFailure func(error) error
	// CloseTimeout is how long Close waits for a failed database before it is left behind.
	CloseTimeout time.Duration
	// StallAfter is how long a call waits for the disk before the log says so; 0 = 5 s.
	StallAfter time.Duration
	// HangTimeout is how long a database that is to be closed waits for a disk that does not
	// answer anything; 0 = 30 s.
	HangTimeout time.Duration
}

// DB is an open database.
type DB struct {
	db     *pebble.DB
	o      Options
	latch  *latch
	sched  *scheduler
	table  memTable
	replay Replay
	opened atomic.Bool
	ended  atomic.Bool
	left   atomic.Bool // behind
	ending atomic.Bool // it is to be closed
	// underway is held, shared, by what is inside Pebble and may be left behind there, and by Close: Pebble gives memory back that
	// such a call still writes to.
	underway sync.RWMutex
	health   health

	checkpoint checkpointing
}

// Open opens (or with Create makes) the database in dir.
func Open(dir string, o Options) (*DB, error) {
	if o.StallAfter == 0 {
		o.StallAfter = 5 * time.Second
	}
	if o.HangTimeout == 0 {
		o.HangTimeout = 30 * time.Second
	}
	d := &DB{o: o, latch: newLatch(), sched: &scheduler{l: o.Resources.limit, opening: true}}
	opened, done := make(chan *pebble.DB, 1), make(chan error, 1)
	go func() {
		_, err := guard("open", func() error {
			db, err := d.open(dir)
			if err == nil {
				opened <- db
			}
			return err
		})
		done <- err
	}()
	ended, err := d.awaitEnd("open", done) // what failed in the background may come right, and the lock is given back then
	if !ended {
		d.leaveBehind()
	}
	if !ended || err != nil {
		if _, first := d.latch.state(); first != nil {
			err = first
		}
		return nil, classify(err)
	}
	d.db = <-opened
	d.opened.Store(true)
	d.sched.opened()
	o.Resources.users.Add(1)
	return d, nil
}

func (d *DB) pebbleOptions(dir string) *pebble.Options {
	po := &pebble.Options{
		FS:                          &parkFS{FS: d.files(), dir: d.o.FS.PathDir(d.o.FS.PathJoin(dir, "x")), opened: &d.opened, report: d.fail, elsewhere: d.checkpoint.fail},
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
			FlushBegin:      func(pebble.FlushInfo) { d.flushBegins() },
			FlushEnd:        func(pebble.FlushInfo) { d.flushEnds() },
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				d.fail(fmt.Errorf("%w: %s: %w", ErrCorrupt, i.Path, i.Details), broken)
			},
		},
	}
	po.Experimental.CompactionScheduler = d.sched
	if d.o.ReadOnly {
		po.ReadOnly, po.FS = true, &readFS{FS: d.o.FS, beforeReplay: d.o.BeforeReplay, noLog: d.o.NoLog}
	}
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
	return &logger{log: d.o.Log, latch: d.latch, info: d.replay.note}
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
	if d.latch.failed.Load() {
		return d.failure()
	}
	return nil
}

func (d *DB) failure() error {
	_, err := d.latch.state()
	return d.o.WrapFailure(err)
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
	if err := d.enter(op); err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() {
		defer d.underway.RUnlock()
		panicked, err := guard(op, fn)
		if d.opened.Load() {
			err = d.outcome(op, err, panicked)
		}
		done <- err
	}()
	w := d.watch(op)
	defer w.end()
	for {
		select {
		case err := <-done:
			return false, err
		case <-w.timer.C:
			w.tick()
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
}

// enter is called before what may be left behind inside Pebble; that releases underway at its end. It does not wait for Close, which
// may wait for ever in a goroutine that was left behind.
func (d *DB) enter(op string) error {
	if !d.underway.TryRLock() {
		return fmt.Errorf("%s: the database is being closed", op)
	}
	return nil
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

// Close closes the database, when what is under way in it has ended. A failed one is left behind if that does not work at
// once; it changes nothing in its directory then, which can be opened again unless the disk does not
// answer. The error is nil also for a database that had failed: Err tells that, then too.
func (d *DB) Close() error {
	if d.ended.Swap(true) {
		return nil
	}
	d.EndSoon()
	defer d.o.Resources.users.Add(-1)
	defer d.forget()
	before, _ := d.latch.state()
	if before == fatal {
		d.leaveBehind()
		return nil
	}
	done := make(chan error, 1)
	go func() {
		d.underway.Lock() // for good
		if level, _ := d.latch.state(); level == fatal || d.left.Load() {
			done <- nil // what was under way ended in a panic, or nobody waits any more and the disk would not answer
			return
		}
		panicked, err := guard("close", d.db.Close)
		if panicked {
			d.fail(err, fatal)
		}
		done <- err
	}()
	closed, err := d.awaitEnd("close", done)
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

// awaitEnd waits for an open or a close as long as the disk answers, but only CloseTimeout once the database has failed,
// and no longer when Pebble is stuck.
func (d *DB) awaitEnd(op string, done <-chan error) (ended bool, err error) {
	w := d.watch(op)
	defer w.end()
	for failed := false; !failed; {
		select {
		case err := <-done:
			return true, err
		case <-w.timer.C:
			w.tick()
		case <-d.latch.closed:
			failed = true
		}
	}
	if level, _ := d.latch.state(); level == fatal {
		return false, nil
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

// leaveBehind lets Pebble be. It changes nothing in the directory any more, and that can be opened again as soon as no
// operation of its is under way.
func (d *DB) leaveBehind() {
	abandoned.Add(1)
	d.left.Store(true)
	d.o.Resources.leaked.Store(true)
	d.sched.abandon()
	d.health.close()
}
