package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// ReadOptions is how to open a task store for reading. The zero value is good for one;
// whoever opens many gives them [Resources] to share.
type ReadOptions struct {
	// Resources is what all task stores of the process share; nil = a very small set of its
	// own, for this store alone.
	Resources *Resources
	// FS is the file system; nil = the operating system's.
	FS vfs.FS
	// Logger takes warnings, and at debug level what the database does; nil = slog.Default().
	Logger *slog.Logger
	// BeforeReplay, if not nil, is called at most once, before a write-ahead log is replayed
	// into memory, with an upper bound of its bytes (a clean close leaves nothing to replay).
	// It may wait, which bounds the memory of many that are opened in parallel; the memory is
	// free after Close. Its error ends the opening.
	BeforeReplay func(bytes int64) error
}

// readMemTableBytes is how large the memtables get into which a log is replayed. They
// begin at 256 KiB and double.
const readMemTableBytes = 4 << 20

// View is a task store open for reading: its metadata, and its entries as of the last
// commit. Nothing in the directory changes: a write-ahead log that has to be replayed is
// replayed into memory. It holds the database's
// lock, so a task store cannot be opened meanwhile. It has no goroutine that Close does not
// wait for. It is safe for concurrent use, but for Close.
type View struct {
	dir       string
	fs        vfs.FS
	resources *Resources
	private   bool
	db        *pebbledb.DB
	meta      *metadata
	opened    OpenStats
}

// OpenReadOnly opens the task store in dir for reading. Errors wrap [ErrNoStore],
// [ErrLocked], [ErrNewerFormat] or [ErrCorrupt] where they apply. A directory without a LOCK
// file (a snapshot), or one where this user may not write, is read without a lock: nobody
// can have it open.
func OpenReadOnly(dir string, o ReadOptions) (*View, error) {
	v := &View{resources: o.Resources}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	v.fs, v.dir = o.FS, absolute(o.FS, dir)
	if v.resources == nil {
		v.resources, v.private = readingResources(), true
	}
	if err := v.open(o); err != nil {
		v.giveBack()
		if errors.Is(err, ErrLocked) || errors.Is(err, ErrNewerFormat) {
			err = fmt.Errorf("%w; %s", err, remedy(err))
		}
		return nil, fmt.Errorf("open task store %s for reading: %w", v.dir, err)
	}
	return v, nil
}

func (v *View) open(o ReadOptions) error {
	begun := time.Now()
	unfinished, err := lookForDatabase(o.FS, v.dir)
	if err != nil {
		return err
	}
	db, err := pebbledb.Open(v.dir, pebbledb.Options{
		FS: o.FS, Resources: v.resources.r, Log: o.Logger.With("dir", v.dir), MemTableSize: readMemTableBytes, ReadOnly: true,
		BeforeReplay: o.BeforeReplay, WrapFailure: v.failure, CloseTimeout: defaultCloseTimeout,
	})
	if err == nil {
		v.meta, err = readMetadata(db)
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	err = markOpen(err)
	if unfinished && errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: it was not finished when it was made, and will be made again", ErrNoStore)
	}
	if err != nil {
		return err
	}
	v.db = db
	if o.FS == vfs.Default {
		v.resources.read.Store(v.dir, true)
	}
	copy(v.opened.ID[:], v.meta.format.GetStoreId())
	r := v.db.Replay()
	v.opened.ReplayedKeys, v.opened.ReplayedBatches, v.opened.ReplayedBytes, v.opened.ReplayTime = r.Keys, r.Batches, r.Bytes, r.Time
	v.opened.Time = time.Since(begun)
	return nil
}

func (v *View) failure(cause error) error { return fmt.Errorf("task store %s: %w", v.dir, cause) }

// lookForDatabase refuses a directory without a database, and tells whether the one that
// is there was perhaps never finished.
func lookForDatabase(fs vfs.FS, dir string) (unfinished bool, err error) {
	info, err := fs.Stat(dir)
	if err != nil {
		return false, noDirectory(err)
	}
	if !info.IsDir() {
		return false, syscall.ENOTDIR
	}
	names, err := fs.List(dir)
	if err != nil {
		return false, err
	}
	unfinished = slices.Contains(names, creatingName)
	if !slices.ContainsFunc(names, isDatabaseFile) {
		return unfinished, fmt.Errorf("%w: the directory has no database in it", ErrNoStore)
	}
	return unfinished, foundDamaged(fs, dir, names)
}

func noDirectory(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoStore, err)
	}
	return err
}

// markOpen joins ErrLocked or ErrNewerFormat to an error of opening a database: Pebble has
// no marks for them; texts and EAGAIN are what it gives.
func markOpen(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EAGAIN), strings.Contains(err.Error(), "lock held by current process"):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("%w: %w", ErrNewerFormat, err)
	}
	return err
}

// absolute makes a path one that does not change with the working directory, and that is
// the same for all who open the directory: the lock of a database knows it by its path.
func absolute(fs vfs.FS, dir string) string {
	if fs != vfs.Default {
		return dir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir // opening it says what is wrong
	}
	return abs
}

// Dir is the directory of the database.
func (v *View) Dir() string { return v.dir }

// OpenStats tells what opening took.
func (v *View) OpenStats() OpenStats { return v.opened }

// Close gives lock and memory back. No scan may be open. Calling it again does nothing.
func (v *View) Close() error {
	if v.db == nil {
		return nil
	}
	err := v.db.Close()
	v.db = nil
	v.giveBack()
	if err != nil {
		return fmt.Errorf("close task store %s: %w", v.dir, err)
	}
	return nil
}

func (v *View) giveBack() {
	if v.private {
		v.resources.r.Close()
	}
}
