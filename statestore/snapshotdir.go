package statestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SnapshotDir makes a task store in to, which must not exist yet, of the one in dir; see
// [TaskStore.Snapshot] for how. The task store in dir may be open, also in another process:
// then the snapshot holds a prefix of its commits, without those that are only in that
// process's memory. The error wraps [ErrNoStore], [ErrCorrupt] or [ErrNewerFormat] where they
// apply.
func SnapshotDir(dir, to string, o ReadOptions) error {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	to = absolute(o.FS, to)
	c := copier{fs: o.FS, dir: absolute(o.FS, dir), o: o}
	// An open view keeps others from opening, so nothing changes.
	v, err := OpenReadOnly(dir, o)
	copyAll := c.copyOnce
	if errors.Is(err, ErrLocked) {
		v, err, copyAll = nil, nil, c.copyRunning
	}
	if err == nil {
		err = makeWhole(o.FS, to, copyAll)
	}
	if v != nil {
		err = errors.Join(err, v.Close())
	}
	if err != nil {
		return fmt.Errorf("snapshot of %s in %s: %w", dir, to, advised(err, "the task store itself is as it was, and the snapshot is to be made anew"))
	}
	return nil
}

// copier copies a database file by file.
type copier struct {
	fs  vfs.FS
	dir string
	o   ReadOptions
}

// copyTries is how often the database may change under the copying: at every flush and
// compaction, which are seconds apart even in a busy store.
const copyTries = 20

// copyRunning copies a database that somebody writes to. What a version of it consists of is
// removed, or used again, only after the manifest says so. So if the manifest is the same
// after the copying as before, every file of that version was there all the time; and the
// logs, which only grow, give a prefix of the batches.
func (c *copier) copyRunning(to string) error {
	last := errors.New("the database changed all the time; take it to the same file system, or let the application take it")
	for range copyTries {
		before, err := c.manifest()
		if err != nil {
			return err
		}
		begun, err := c.begin(to)
		after, merr := c.manifest()
		same := err == nil && merr == nil && after == before
		if same {
			err = begun.finish(c.fs, to)
		}
		begun.close()
		if same && err == nil {
			if err = c.opens(to); err == nil {
				return nil
			}
		}
		if err = errors.Join(err, merr); err != nil {
			last = err
		}
		if err := c.fs.RemoveAll(to); err != nil {
			return err
		}
	}
	return last
}

// copyOnce copies a database that does not change.
func (c *copier) copyOnce(to string) error {
	begun, err := c.begin(to)
	defer begun.close()
	if err != nil {
		return err
	}
	return begun.finish(c.fs, to)
}

// opens makes sure that the copy is whole.
func (c *copier) opens(dir string) error {
	v, err := OpenReadOnly(dir, c.o)
	if err != nil {
		return err
	}
	return v.Close()
}

// manifest says which manifest is the present one, and how long it is.
func (c *copier) manifest() (state string, err error) {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return "", err
	}
	marker := ""
	for _, name := range names {
		if strings.HasPrefix(name, "marker.manifest.") {
			marker = max(marker, name)
		}
	}
	i := strings.Index(marker, "MANIFEST-")
	if i < 0 {
		return "", fmt.Errorf("%w: no marker says which manifest is the present one", ErrCorrupt)
	}
	info, err := c.fs.Stat(c.fs.PathJoin(c.dir, marker[i:]))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s of %d bytes", marker, info.Size()), nil
}

// copying is files that are still to be copied, or only to be synced.
type copying struct {
	from, to []vfs.File
	late     []string // names, of from
}

// begin does what must be done quickly. It links the tables, which never change, and copies
// everything else, which is written to again. A table that cannot be linked is opened, to
// be copied when there is time: it stays readable when it is removed.
func (c *copier) begin(to string) (*copying, error) {
	x := &copying{}
	if err := c.fs.MkdirAll(to, 0o700); err != nil {
		return x, err
	}
	names, err := c.fs.List(c.dir)
	if err != nil {
		return x, err
	}
	slices.Sort(names) // a log before those that follow it
	for _, name := range names {
		if !isDatabaseFile(name) || strings.HasSuffix(name, ".dbtmp") {
			continue
		}
		from, dest := c.fs.PathJoin(c.dir, name), c.fs.PathJoin(to, name)
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") {
			if err = c.fs.Link(from, dest); err != nil && !errors.Is(err, fs.ErrNotExist) {
				err = x.open(c.fs, from)
			}
		} else {
			err = x.copy(c.fs, from, dest)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // what was removed meanwhile is not needed
			return x, err
		}
	}
	return x, nil
}

func (x *copying) open(files vfs.FS, from string) error {
	f, err := files.Open(from)
	if err == nil {
		x.from, x.late = append(x.from, f), append(x.late, files.PathBase(from))
	}
	return err
}

// copy leaves the sync for later.
func (x *copying) copy(files vfs.FS, from, to string) error {
	f, err := files.Open(from)
	if err != nil {
		return err
	}
	g, err := files.Create(to, vfs.WriteCategoryUnspecified)
	if err == nil {
		x.to = append(x.to, g)
		_, err = io.Copy(g, f)
	}
	return errors.Join(err, f.Close())
}

// finish copies what is left, and takes everything to the disk.
func (x *copying) finish(files vfs.FS, to string) error {
	for i, from := range x.from {
		g, err := files.Create(files.PathJoin(to, x.late[i]), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		x.to = append(x.to, g)
		if _, err := io.Copy(g, from); err != nil {
			return err
		}
	}
	for _, g := range x.to {
		if err := g.Sync(); err != nil {
			return err
		}
	}
	return syncDir(files, to)
}

func (x *copying) close() {
	for _, f := range slices.Concat(x.from, x.to) {
		_ = f.Close() // read, or synced, or of no use any more
	}
}
