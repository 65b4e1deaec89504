package statedir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// idList is a file with one id a line that only grows.
type idList struct {
	f    *os.File
	ids  []string
	size int64 // bytes of complete lines; the file may hold more after a failed write
}

func openIDList(path string) (*idList, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open list of transactional ids: %w", err)
	}
	l := &idList{f: f}
	if err := l.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open list of transactional ids %s: %w", path, err), f.Close())
	}
	return l, nil
}

// load reads the complete lines and cuts what follows the last of them: the end of an
// add that a crash interrupted, whose id was therefore never used.
func (l *idList) load() error {
	text, err := io.ReadAll(l.f)
	if err != nil {
		return err
	}
	complete := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range strings.Lines(string(complete)) {
		id := strings.TrimSuffix(line, "\n")
		if err := checkID(id); err != nil {
			return fmt.Errorf("line %q: %w: the file was changed by something else; take the line out", id, err)
		}
		l.ids = append(l.ids, id)
	}
	l.size = int64(len(complete))
	if len(complete) < len(text) {
		if err := l.f.Truncate(l.size); err != nil {
			return err
		}
	}
	// The file itself may be new, and the last lines may never have been synced by a
	// process that was killed before it used them.
	return errors.Join(l.f.Sync(), syncDir(filepath.Dir(l.f.Name())))
}

// add returns nil only when id is on disk.
func (l *idList) add(id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if slices.Contains(l.ids, id) {
		return nil
	}
	line := []byte(id + "\n")
	// At a fixed place, so that what a failed add left there is overwritten, not continued.
	_, err := l.f.WriteAt(line, l.size)
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		// Best effort: a shorter id written here later must not leave a rest behind it.
		return errors.Join(err, l.f.Truncate(l.size))
	}
	l.ids = append(l.ids, id)
	l.size += int64(len(line))
	return nil
}

func (l *idList) close() error { return l.f.Close() }

func checkID(id string) error {
	if id == "" {
		return errors.New("an id cannot be empty")
	}
	if i := strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("an id cannot contain the control character %q", id[i])
	}
	return nil
}
