package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

// asideMark stands in the name of a task directory that was set aside, between the task's
// id and the time.
const asideMark = ".corrupt-"

// asideFile, in a directory that was set aside, says why and when.
const asideFile = "set-aside.txt"

// ErrNoReason: a directory was set aside, and the file that says why could not be written.
var ErrNoReason = errors.New("the reason for setting a directory aside could not be written")

// SetAside renames the directory of a task that cannot be used, with the reason in a file
// in it, and gives the new path: <task>.corrupt-<time>. Nothing is deleted; the task begins
// with no directory. The task must not be open. It is on the disk when SetAside returns. With a path an
// error wraps [ErrNoReason]: it was set aside all the same.
func (d *Dir) SetAside(taskID, reason string) (path string, err error) {
	from := d.TaskDir(taskID)
	now := time.Now().UTC()
	if _, ok := parseTaskID(taskID); !ok {
		return "", fmt.Errorf("set aside %q in %s: that is not the id of a task", taskID, d.path)
	}
	text := fmt.Sprintf("Set aside on %s: this directory could not be used any more.\n\n%s\n\n"+
		"The task's stores are restored from their changelogs. Nothing reads this directory again: look into it, or remove it.\n",
		now.Format(time.RFC3339), reason)
	// The reason is a help, not a condition: on a disk without space the rename still works.
	var reasonErr error
	if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() { // a file in the place of the directory has room for none
		reasonErr = writeDurably(filepath.Join(from, asideFile), []byte(text))
	}
	failpoint.Hit("aside-reason")
	path, err = d.freeName(from + asideMark + now.Format("20060102T150405Z"))
	if err == nil {
		err = os.Rename(from, path)
		failpoint.Hit("aside-renamed")
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return "", fmt.Errorf("set aside %s: %w", from, errors.Join(err, reasonErr))
	}
	failpoint.Hit("set-aside")
	if reasonErr != nil {
		return path, fmt.Errorf("%w in %s: %w", ErrNoReason, path, reasonErr)
	}
	return path, nil
}

// freeName gives a name that is not there yet: two in one second are possible.
func (d *Dir) freeName(name string) (string, error) {
	for n := 1; n < 1000; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s and many more with a number are there already", name)
}

// Aside is a task directory that was set aside, or the copy of one, see [Dir.Keep].
type Aside struct {
	Task, Path string
	// Reason is the text that was left in it; "" if it cannot be read.
	Reason string
}

// AsideDirs gives the directories that were set aside, by name.
func (d *Dir) AsideDirs() ([]Aside, error) { return AsideDirs(d.path) }

// AsideDirs is [Dir.AsideDirs] for an application directory that is not open.
func AsideDirs(appDir string) ([]Aside, error) {
	entries, err := os.ReadDir(appDir)
	if err != nil {
		return nil, fmt.Errorf("list directories that were set aside: %w", err)
	}
	var all []Aside
	for _, e := range entries {
		id, _, ok := strings.Cut(e.Name(), asideMark)
		if !ok {
			id, _, ok = strings.Cut(e.Name(), keptMark)
		}
		if _, isTask := parseTaskID(id); !ok || !isTask || !e.IsDir() {
			continue
		}
		a := Aside{Task: id, Path: filepath.Join(appDir, e.Name())}
		if text, err := os.ReadFile(filepath.Join(a.Path, asideFile)); err == nil {
			a.Reason = string(text)
		}
		all = append(all, a)
	}
	return all, nil
}
