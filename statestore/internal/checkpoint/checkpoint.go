package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

// Path is where the checkpoint of a store is, in the directory of its task.
func Path(fs vfs.FS, taskDir, store string) string { return fs.PathJoin(taskDir, ".checkpoint_"+store) }

// Write replaces the file by one with that entry, whose offset is that of the last record applied.
func Write(fs vfs.FS, path string, e offsetfile.Line) error {
	tmp := path + ".tmp"
	if err := writeFile(fs, tmp, []byte(offsetfile.Format(e))); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", tmp, err)
	}
	if err := fs.Rename(tmp, path); err != nil {
		return fmt.Errorf("rename checkpoint to %s: %w", path, err)
	}
	return syncDir(fs, path)
}

// Remove removes the file, if there is one.
func Remove(fs vfs.FS, path string) error {
	err := fs.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove checkpoint %s: %w", path, err)
	}
	return syncDir(fs, path)
}

func writeFile(fs vfs.FS, path string, b []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(fs vfs.FS, path string) error {
	d, err := fs.OpenDir(fs.PathDir(path))
	if err != nil {
		return fmt.Errorf("sync directory of %s: %w", path, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory of %s: %w", path, err)
	}
	return nil
}

// Read gives the content of the file; exists is false when there is none. An error with exists is about the
// file itself: it cannot be read, or what it holds means nothing.
func Read(fs vfs.FS, path string) (content offsetfile.Content, exists bool, err error) {
	names, err := fs.List(fs.PathDir(path))
	if err != nil {
		return content, false, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	if !slices.Contains(names, fs.PathBase(path)) {
		return content, false, nil
	}
	if content, err = parseFile(fs, path); err != nil {
		return offsetfile.Content{}, true, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	return content, true, nil
}

func parseFile(fs vfs.FS, path string) (content offsetfile.Content, err error) {
	info, err := fs.Stat(path)
	if err != nil {
		return content, err // a link to nothing, too
	}
	if !info.IsDir() && !info.Mode().IsRegular() { // to open a pipe could last for ever
		return content, errors.New("not a regular file")
	}
	f, err := fs.Open(path)
	if err != nil {
		return content, err
	}
	content, err = offsetfile.Parse(f)
	return content, errors.Join(err, f.Close())
}
