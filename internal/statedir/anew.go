package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const anewFile = "begins-anew"

// Anew tells whether [Dir.BeginAnew] was said since a transactional id was last to be used: what the list of these names is of
// a former life, and nothing was committed from here in the present one.
func (d *Dir) Anew() (bool, error) {
	_, err := os.Stat(filepath.Join(d.path, anewFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether the application begins anew: %w", err)
	}
	return true, nil
}

// BeginAnew records that the group's offsets were deleted with all state. [Dir.RemoveAll] alone does not: the offsets that stay tell of
// the former life.
func (d *Dir) BeginAnew() error {
	if err := writeDurably(filepath.Join(d.path, anewFile), nil); err != nil {
		return fmt.Errorf("record that the application begins anew: %w", err)
	}
	return nil
}

// begun forgets that the application begins anew. It is on the disk before anything can be committed.
func (d *Dir) begun() error {
	err := os.Remove(filepath.Join(d.path, anewFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("record that the application has begun: %w", err)
	}
	return syncDir(d.path)
}
