package pebbledb

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// parkFS keeps from Pebble the errors that make it panic where no recover helps. When
// it cannot go over to a new write-ahead log (a full disk is enough) it panics between an
// Unlock and the Lock that a deferred Unlock counts on, and the runtime ends the process.
// When the directory cannot be synced, it panics on a goroutine of its own. So the first
// such error closes the latch, and its goroutine never returns: whoever waits for it waits
// for the latch as well.
//
// Other errors reach Pebble, which hands them on; so do all of files elsewhere: those of a
// checkpoint.
type parkFS struct {
	vfs.FS
	dir string // the database's, as PathDir gives it
	// opened: before, Pebble returns the errors of a log like all others.
	opened *atomic.Bool
	// report is called with the first failure.
	report func(error, severity)
	// elsewhere is called when another directory, a checkpoint's, cannot be synced.
	elsewhere func(error)
}

func (p *parkFS) check(op, name string, err error) error {
	if err == nil || isLog(name) && !p.opened.Load() {
		return err
	}
	p.report(classify(fmt.Errorf("%s %s: %w", op, name, err)), fatal)
	select {}
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Create implements vfs.FS. A new manifest is synced in its directory at once: Pebble does
// so only together with the marker that points at it, and a file system that does not keep
// the order of the two could leave a marker that points at nothing.
func (p *parkFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	if err == nil && strings.HasPrefix(p.PathBase(name), "MANIFEST-") {
		if err := p.syncDir(p.PathDir(name)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return p.log("create", name, f, err)
}

func (p *parkFS) syncDir(name string) error {
	d, err := p.FS.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReuseForWrite implements vfs.FS.
func (p *parkFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldname, newname, category)
	return p.log("reuse", newname, f, err)
}

func (p *parkFS) log(op, name string, f vfs.File, err error) (vfs.File, error) {
	if !isLog(name) || p.PathDir(name) != p.dir {
		return f, err
	}
	if err := p.check(op, name, err); err != nil {
		return nil, err
	}
	return &parkFile{File: f, fs: p, name: name}, nil
}

// OpenDir implements vfs.FS.
func (p *parkFS) OpenDir(name string) (vfs.File, error) {
	f, err := p.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if p.PathDir(p.PathJoin(name, "x")) != p.dir {
		return &checkpointDir{File: f, failed: p.elsewhere}, nil
	}
	return &parkFile{File: f, fs: p, name: name}, nil
}

// MkdirAll implements vfs.FS. Only a checkpoint makes a directory.
func (p *parkFS) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, 0o700) }

// Unwrap implements vfs.FS.
func (p *parkFS) Unwrap() vfs.FS { return p.FS }

// parkFile is a log or a directory. Preallocation may fail.
type parkFile struct {
	vfs.File
	fs   *parkFS
	name string
	// closed: a log whose Close has failed, and parked whoever called it, is closed again by
	// the next who wants a new one. Not every file system bears that.
	closed atomic.Bool
}

// call runs fn unless the file is closed.
func (f *parkFile) call(op string, fn func() error) error {
	if f.closed.Load() {
		return f.fs.check(op, f.name, os.ErrClosed)
	}
	return f.fs.check(op, f.name, fn())
}

// Write implements vfs.File.
func (f *parkFile) Write(b []byte) (n int, err error) {
	err = f.call("write", func() (err error) { n, err = f.File.Write(b); return err })
	return n, err
}

// Sync implements vfs.File.
func (f *parkFile) Sync() error { return f.call("sync", f.File.Sync) }

// SyncData implements vfs.File.
func (f *parkFile) SyncData() error { return f.call("sync", f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *parkFile) SyncTo(length int64) (full bool, err error) {
	err = f.call("sync", func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Stat implements vfs.File.
func (f *parkFile) Stat() (vfs.FileInfo, error) {
	i, err := f.File.Stat()
	return i, f.fs.check("stat", f.name, err)
}

// Close implements vfs.File.
func (f *parkFile) Close() error {
	if f.closed.Swap(true) {
		return f.fs.check("close", f.name, os.ErrClosed)
	}
	return f.fs.check("close", f.name, f.File.Close())
}

// checkpointDir is a directory of a checkpoint. Pebble would panic if it could not be synced.
type checkpointDir struct {
	vfs.File
	failed func(error)
}

// Sync implements vfs.File.
func (d *checkpointDir) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.failed(err)
	}
	return nil
}
