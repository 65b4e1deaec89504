package statestore

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// damagedName is a file that stands in the directory when damage was found in the database
// while it was in use. Pebble would open it again, and the task would fail at the same
// block again; with the file it is not opened any more, so that whoever opens it sets the
// directory aside.
const damagedName = "tidemark.corrupt"

// markDamaged writes the file when the task store has failed because of damage. It is all
// the same if it cannot: the next one to meet the damage will try again. A disk that hangs
// is waited for as long as for the database.
func (s *TaskStore) markDamaged() {
	reason := s.db.Err()
	if s.o.Engine != Pebble || !errors.Is(reason, ErrCorrupt) {
		return
	}
	done := make(chan error, 1)
	go func() { done <- writeDamaged(s.o.FS, s.dir, reason.Error()) }()
	timeout := time.NewTimer(s.o.closeTimeout)
	defer timeout.Stop()
	var err error
	select {
	case err = <-done:
	case <-timeout.C:
		err = errors.New("the disk does not answer")
	}
	if err != nil {
		s.log.Warn("the damage could not be recorded in the directory", "error", err)
	}
}

func writeDamaged(fs vfs.FS, dir, reason string) error {
	f, err := fs.Create(fs.PathJoin(dir, damagedName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(reason))
	return errors.Join(err, f.Sync(), f.Close(), syncDir(fs, dir))
}

// foundDamaged gives an error if the directory with those files is marked as damaged.
func foundDamaged(fs vfs.FS, dir string, names []string) error {
	if !slices.Contains(names, damagedName) {
		return nil
	}
	reason, path := "unknown", fs.PathJoin(dir, damagedName)
	info, err := fs.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // opening a pipe, say, would wait
		return fmt.Errorf("%w: damage was found when it was open last: %s", ErrCorrupt, reason)
	}
	if f, err := fs.Open(path); err == nil {
		if b, err := io.ReadAll(io.LimitReader(f, 4096)); err == nil && len(b) > 0 {
			reason = strings.TrimSpace(string(b))
		}
		_ = f.Close()
	}
	return fmt.Errorf("%w: damage was found when it was open last: %s", ErrCorrupt, reason)
}

// OtherFiles gives the names in dir that are not files of a task store, in order: what
// another program left there.
func OtherFiles(dir string) ([]string, error) {
	names, err := vfs.Default.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return isDatabaseFile(name) || name == "LOCK" || name == creatingName || name == damagedName
	})
	slices.Sort(names)
	return names, nil
}
