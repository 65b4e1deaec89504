package pebbledb

import (
	"errors"
	"fmt"
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
// Other errors reach Pebble, which hands them on.
type parkFS struct {
	vfs.FS
	// opened: before, Pebble returns the errors of a log like all others.
	opened *atomic.Bool
	// report is called with the first failure.
	report func(error, severity)
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
	if !isLog(name) {
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
	return &parkFile{File: f, fs: p, name: name}, nil
}

// Unwrap implements vfs.FS.
func (p *parkFS) Unwrap() vfs.FS { return p.FS }

// parkFile is a log or a directory. Preallocation may fail.
type parkFile struct {
	vfs.File
	fs   *parkFS
	name string
}

// Write implements vfs.File.
func (f *parkFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, f.fs.check("write", f.name, err)
}

// Sync implements vfs.File.
func (f *parkFile) Sync() error { return f.fs.check("sync", f.name, f.File.Sync()) }

// SyncData implements vfs.File.
func (f *parkFile) SyncData() error { return f.fs.check("sync", f.name, f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *parkFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.name, err)
}

// Stat implements vfs.File.
func (f *parkFile) Stat() (vfs.FileInfo, error) {
	i, err := f.File.Stat()
	return i, f.fs.check("stat", f.name, err)
}

// Close implements vfs.File.
func (f *parkFile) Close() error { return f.fs.check("close", f.name, f.File.Close()) }
