package statestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointer is an engine that can copy itself.
type checkpointer interface {
	Checkpoint(dir string) error
	Aside(op string, fn func(vfs.FS) error) error
}

// Snapshot makes a task store in dir, which must not exist yet, with everything that was
// committed when it was called, on the disk when it returns. Commits that go on meanwhile
// are in it as a prefix: it is always the state after one commit. Any goroutine may call
// it. Files are hard links where dir is on the same file system; elsewhere they are copied.
//
// It is made under a name that begins with dir and ".partial-", and renamed: dir is whole,
// or it is not there. What a crash leaves under that name may be removed. A failure (no
// space at dir) does not touch the task store.
func (s *TaskStore) Snapshot(dir string) error {
	s.ending.RLock()
	defer s.ending.RUnlock()
	if err := s.usable(); err != nil {
		return err
	}
	c, ok := s.db.(checkpointer)
	if !ok {
		return fmt.Errorf("snapshot of %s: a task store in memory has no files", s.dir)
	}
	dir = absolute(s.o.FS, dir)
	if err := c.Aside("snapshot", func(files vfs.FS) error { return makeWhole(files, dir, c.Checkpoint) }); err != nil {
		return fmt.Errorf("snapshot of %s in %s: %w", s.dir, dir, advised(err, "the task store itself goes on, and the snapshot is to be made anew"))
	}
	return nil
}

// makeWhole makes a directory with fill, which syncs what it writes, under another name
// first.
func makeWhole(files vfs.FS, dir string, fill func(dir string) error) error {
	if _, err := files.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("it exists already; give a path that does not")
		}
		return err
	}
	parent := files.PathDir(dir)
	if err := makeDir(files, parent); err != nil {
		return err
	}
	partial := dir + ".partial-" + strings.ToLower(rand.Text()[:8])
	err := fill(partial)
	if err == nil {
		err = files.Rename(partial, dir)
	}
	if err != nil {
		return errors.Join(err, files.RemoveAll(partial))
	}
	return syncDir(files, parent)
}
