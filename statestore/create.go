package statestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// creatingName is a file that stands in the directory while the database is being made.
// A database that was never finished has never taken a commit: it is made again. Without
// the file, a directory with a damaged database never becomes a new, empty one.
const creatingName = "tidemark.creating"

// isDatabaseFile tells whether a file is one of Pebble's. (A task directory may also hold
// files that Kafka Streams left.)
func isDatabaseFile(name string) bool {
	for _, p := range []string{"MANIFEST-", "OPTIONS-", "marker."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for _, e := range []string{".sst", ".log", ".blob", ".dbtmp"} {
		if number, ok := strings.CutSuffix(name, e); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

// removeUnfinished lists the directory again: the attempt to open it made and removed files.
func (s *TaskStore) removeUnfinished() error {
	names, err := s.o.FS.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if isDatabaseFile(name) {
			if err := s.o.FS.Remove(s.o.FS.PathJoin(s.dir, name)); err != nil {
				return fmt.Errorf("remove unfinished database: %w", err)
			}
		}
	}
	return nil
}

func (s *TaskStore) create() error {
	fs := s.o.FS
	f, err := fs.Create(fs.PathJoin(s.dir, creatingName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), syncDir(fs, s.dir)); err != nil {
		return err
	}
	if err := s.openDatabase(true); err != nil {
		return err
	}
	s.opened.Created = true
	if err := errors.Join(s.writeFormat(), s.load()); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return s.endCreation()
}

// endCreation must be durable before the first commit is: later the file would cost data.
func (s *TaskStore) endCreation() error {
	fs := s.o.FS
	err := fs.Remove(fs.PathJoin(s.dir, creatingName))
	if err == nil {
		err = syncDir(fs, s.dir)
	}
	if err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// makeDir makes a directory with all its parents, so that a crash does not lose it again:
// each new one is synced in its parent.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeDir(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fs, parent)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *TaskStore) writeFormat() error {
	id := make([]byte, 16)
	rand.Read(id)
	b, err := encodeFormat(id, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	err = s.db.Apply("write format", len(b), true, func(batch engine.Batch) error {
		engine.Set(batch, nil, keyFormat, nil, b)
		return nil
	})
	if err != nil {
		return err
	}
	return s.db.Flush() // peekFormat does not read the log
}
