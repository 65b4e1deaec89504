package pebbledb

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// health tells whether the disk answers. Pebble's own checks take a ticker for each database; here
// whoever waits for the database looks.
//
// It is the gate too: a database that is left behind changes nothing any more, so that its directory can be opened again.
type health struct {
	answered atomic.Int64 // counts the operations that came back
	last     atomic.Pointer[fileOp]

	under atomic.Int64 // way: operations
	shut  atomic.Bool
	mu    sync.Mutex
	lock  io.Closer // of the directory; nil: it is not locked, or not any more
}

// begin lets an operation through, or never returns: nobody waits for who was left behind.
func (h *health) begin(op *fileOp) {
	h.under.Add(1)
	if h.shut.Load() {
		h.end()
		select {}
	}
	h.last.Store(op)
}

// end is called behind an operation. The last of a database that was left behind gives the directory back.
func (h *health) end() {
	h.answered.Add(1)
	if h.under.Add(-1) == 0 && h.shut.Load() {
		_ = h.unlock() // nobody is there to be told; who opens the directory is
	}
}

// close refuses all operations from now on, and unlocks the directory behind those that are under way. A disk that
// does not answer keeps it locked.
func (h *health) close() {
	h.under.Add(1)
	h.shut.Store(true)
	h.end()
}

func (h *health) unlock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock == nil {
		return nil
	}
	l := h.lock
	h.lock = nil
	return l.Close()
}

// lockOnce is the lock as Pebble sees it: when the directory was given back already, somebody else may have it.
type lockOnce struct{ h *health }

// Close implements io.Closer.
func (l lockOnce) Close() error { return l.h.unlock() }

// fileOp is what was asked of the disk last.
type fileOp struct{ op, name string }

func (o *fileOp) String() string {
	if o == nil {
		return "nothing was asked of it"
	}
	return o.op + " " + o.name
}

// healthFS counts what changes files and directories, and takes its time.
type healthFS struct {
	vfs.FS
	h *health
}

func (f *healthFS) do(op, name string, fn func() error) error {
	f.h.begin(&fileOp{op, name})
	defer f.h.end()
	return fn()
}

func (f *healthFS) open(op, name string, fn func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.do(op, name, func() (err error) { file, err = fn(); return err })
	if err != nil {
		return nil, err
	}
	return &healthFile{File: file, h: f.h, write: &fileOp{"write", name}, sync: &fileOp{"sync", name}}, nil
}

// Create implements vfs.FS.
func (f *healthFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// ReuseForWrite implements vfs.FS.
func (f *healthFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("reuse", newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// OpenDir implements vfs.FS.
func (f *healthFS) OpenDir(name string) (vfs.File, error) {
	return f.open("open", name, func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

// Remove implements vfs.FS.
func (f *healthFS) Remove(name string) error {
	return f.do("remove", name, func() error { return f.FS.Remove(name) })
}

// Rename implements vfs.FS.
func (f *healthFS) Rename(oldname, newname string) error {
	return f.do("rename", newname, func() error { return f.FS.Rename(oldname, newname) })
}

// Link implements vfs.FS.
func (f *healthFS) Link(oldname, newname string) error {
	return f.do("link", newname, func() error { return f.FS.Link(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (f *healthFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.do("make", dir, func() error { return f.FS.MkdirAll(dir, perm) })
}

// RemoveAll implements vfs.FS.
func (f *healthFS) RemoveAll(name string) error {
	return f.do("remove", name, func() error { return f.FS.RemoveAll(name) })
}

// Lock implements vfs.FS.
func (f *healthFS) Lock(name string) (l io.Closer, err error) {
	err = f.do("lock", name, func() error {
		if l, err = f.FS.Lock(name); err != nil {
			return err
		}
		f.h.mu.Lock()
		defer f.h.mu.Unlock()
		f.h.lock = l
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lockOnce{f.h}, nil
}

// Unwrap implements vfs.FS.
func (f *healthFS) Unwrap() vfs.FS { return f.FS }

type healthFile struct {
	vfs.File
	h           *health
	write, sync *fileOp
}

// Write implements vfs.File.
func (f *healthFile) Write(b []byte) (int, error) {
	f.h.begin(f.write)
	defer f.h.end()
	return f.File.Write(b)
}

// Preallocate implements vfs.File.
func (f *healthFile) Preallocate(offset, length int64) error {
	f.h.begin(f.write)
	defer f.h.end()
	return f.File.Preallocate(offset, length)
}

// Sync implements vfs.File.
func (f *healthFile) Sync() error {
	f.h.begin(f.sync)
	defer f.h.end()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *healthFile) SyncData() error {
	f.h.begin(f.sync)
	defer f.h.end()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *healthFile) SyncTo(length int64) (bool, error) {
	f.h.begin(f.sync)
	defer f.h.end()
	return f.File.SyncTo(length)
}

// EndSoon is called when the database is to be closed: a call that waits for a disk that does not
// answer, this one's or another goroutine's, then fails instead of going on waiting.
func (d *DB) EndSoon() { d.ending.Store(true) }

// files is the file system as the database uses it.
func (d *DB) files() *healthFS { return &healthFS{FS: d.o.FS, h: &d.health} }

// Aside runs fn, which changes files that are not the database's: an error does not fail that. A disk that does not answer
// ends the waiting as it does that of a call of the database.
func (d *DB) Aside(op string, fn func(vfs.FS) error) error {
	return d.aside(op, func() error { return fn(d.files()) })
}

// aside runs fn, which changes files beside the database's own, and waits for it as for a call of the database; but an error
// does not fail the database, and only a fatal failure leaves fn behind: after any other the directory may be opened again,
// and nobody may write to its files then.
func (d *DB) aside(op string, fn func() error) error {
	if level, _ := d.latch.state(); level == fatal {
		return d.Err()
	}
	done := make(chan error, 1)
	go func() {
		panicked, err := guard(op, fn)
		if panicked {
			d.fail(err, fatal)
		}
		done <- err
	}()
	w := d.watch(op)
	defer w.end()
	for {
		select {
		case err := <-done:
			return err
		case <-w.timer.C:
			w.tick()
			if level, _ := d.latch.state(); level == fatal {
				return d.Err()
			}
		}
	}
}

// stall watches one call that waits for the database.
type stall struct {
	d        *DB
	op       string
	timer    *time.Timer
	begun    time.Time
	wait     time.Duration // until the log is told next
	told     bool
	answered int64
	last     time.Time     // tick
	silent   time.Duration // for which the disk has not answered, while the database was to be closed
}

func (d *DB) watch(op string) *stall {
	now := time.Now()
	return &stall{d: d, op: op, timer: time.NewTimer(d.interval()), begun: now, wait: d.o.StallAfter, answered: d.health.answered.Load(), last: now}
}

func (d *DB) interval() time.Duration { return min(d.o.StallAfter, d.o.HangTimeout/4) }

// tick is called when the timer has run out. It says in the log that the call takes long, at longer and longer intervals,
// and fails the database when it is to be closed and its disk has not answered for HangTimeout.
func (s *stall) tick() {
	d, now := s.d, time.Now()
	n := d.health.answered.Load()
	if waited := now.Sub(s.begun); waited >= s.wait {
		s.wait, s.told = 2*waited, true
		d.o.Log.Warn("the disk is slow, or does not answer", "operation", s.op, "waiting", waited.Round(time.Millisecond),
			"answers", n != s.answered, "last", d.health.last.Load().String())
	}
	switch {
	case n != s.answered || !d.ending.Load():
		s.answered, s.silent = n, 0
	default: // a process that was stopped for a while has not waited for that long
		s.silent += min(now.Sub(s.last), 2*d.interval())
	}
	s.last = now
	if s.silent >= d.o.HangTimeout {
		d.fail(fmt.Errorf("%s: the disk has not answered for %v: %v", s.op, s.silent.Round(time.Millisecond), d.health.last.Load()), fatal)
		return
	}
	s.timer.Reset(d.interval())
}

func (s *stall) end() {
	s.timer.Stop()
	if s.told {
		s.d.o.Log.Info("the call that waited for the disk has ended", "operation", s.op, "waited", time.Since(s.begun).Round(time.Millisecond))
	}
}
