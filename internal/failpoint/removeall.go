package failpoint

import (
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll is os.RemoveAll, with a point of that name behind each file that is gone, so that a test can stop half-way.
func RemoveAll(dir, name string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		Hit(name)
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
