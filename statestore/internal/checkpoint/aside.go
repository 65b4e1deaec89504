package checkpoint

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SetAside renames what is at path, whatever it is, to path + suffix, with a number when that is taken. It
// is on the disk afterwards.
func SetAside(fs vfs.FS, path, suffix string) (to string, err error) {
	if to, err = freeName(fs, path, suffix); err == nil {
		err = fs.Rename(path, to)
	}
	if err != nil {
		return "", fmt.Errorf("set checkpoint %s aside: %w", path, err)
	}
	return to, syncDir(fs, path)
}

// Keep makes a copy of the file as SetAside would name it, before its place is taken.
func Keep(fs vfs.FS, path, suffix string) error {
	to, err := freeName(fs, path, suffix)
	if err == nil {
		err = vfs.Copy(fs, path, to) // which syncs it
	}
	if err != nil {
		return fmt.Errorf("keep a copy of checkpoint %s: %w", path, err)
	}
	return syncDir(fs, path)
}

func freeName(fs vfs.FS, path, suffix string) (string, error) {
	names, err := fs.List(fs.PathDir(path))
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		free := path + suffix
		if n > 1 {
			free = fmt.Sprintf("%s-%d", free, n)
		}
		if !slices.Contains(names, fs.PathBase(free)) {
			return free, nil
		}
	}
}
