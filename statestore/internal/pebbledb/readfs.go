package pebbledb

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readFS refuses everything that would change a file.
type readFS struct {
	vfs.FS
	beforeReplay func(bytes int64) error
	// noLog hides the logs.
	noLog bool
}

var errReadOnly = errors.New("the database is open for reading only")

// Lock implements vfs.FS. It takes the lock only where there is a file to lock: without
// one nobody ever had the directory open (it is a snapshot). Who may not write there does
// not hold the lock either, and cannot take it.
func (f *readFS) Lock(name string) (io.Closer, error) {
	if _, err := f.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return noLock{}, nil
	}
	c, err := f.FS.Lock(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return noLock{}, nil
	}
	return c, err
}

// Open implements vfs.FS. A log is opened only to replay it, oldest first.
func (f *readFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if isLog(name) && f.beforeReplay != nil {
		bytes, err := f.logBytes(name)
		if err != nil {
			return nil, err
		}
		call := f.beforeReplay
		f.beforeReplay = nil
		if err := call(bytes); err != nil {
			return nil, err
		}
	}
	return f.FS.Open(name, opts...)
}

// logBytes gives the size of a log and all that are newer.
func (f *readFS) logBytes(oldest string) (total int64, err error) {
	dir := f.PathDir(oldest)
	names, err := f.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if !isLog(name) || name < f.PathBase(oldest) { // numbers of six digits and more
			continue
		}
		info, err := f.Stat(f.PathJoin(dir, name))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// List implements vfs.FS.
func (f *readFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if f.noLog {
		names = slices.DeleteFunc(names, isLog)
	}
	return names, err
}

// noLock is a lock that there is no need to hold.
type noLock struct{}

func (noLock) Close() error { return nil }

func refuse(op, name string) error { return &os.PathError{Op: op, Path: name, Err: errReadOnly} }

// Create implements vfs.FS.
func (f *readFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse("create", name)
}

// Link implements vfs.FS.
func (f *readFS) Link(_, newname string) error { return refuse("link", newname) }

// OpenReadWrite implements vfs.FS.
func (f *readFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refuse("open for writing", name)
}

// Remove implements vfs.FS.
func (f *readFS) Remove(name string) error { return refuse("remove", name) }

// RemoveAll implements vfs.FS.
func (f *readFS) RemoveAll(name string) error { return refuse("remove", name) }

// Rename implements vfs.FS.
func (f *readFS) Rename(oldname, _ string) error { return refuse("rename", oldname) }

// ReuseForWrite implements vfs.FS.
func (f *readFS) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse("reuse", oldname)
}

// MkdirAll implements vfs.FS.
func (f *readFS) MkdirAll(dir string, _ os.FileMode) error { return refuse("make directory", dir) }

// Unwrap implements vfs.FS.
func (f *readFS) Unwrap() vfs.FS { return f.FS }
