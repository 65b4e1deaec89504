package statedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

// trashMark begins the name of a task directory that is being removed.
const trashMark = ".trash-"

// CleanOptions says which task directories are to be removed.
type CleanOptions struct {
	// OlderThan is how long ago the task must have been owned here for the last time.
	OlderThan time.Duration
	// LastOwned tells when that was, from what the directory itself records; never from a
	// file's time. With an error the directory stays, and the error is the reason.
	LastOwned func(taskDir string) (time.Time, error)
	// DryRun only says what would be removed.
	DryRun bool
}

// Cleaned is what was decided about one task directory.
type Cleaned struct {
	Task, Path string
	// LastOwned is zero when it is not known.
	LastOwned time.Time
	// Remove: it was removed, or would be in a dry run.
	Remove bool
	// Err says why a directory stays that should perhaps go, or could not be removed.
	Err error
}

// Clean removes the directories of tasks that nobody in this process has leased and that were
// last owned here longer ago than OlderThan. Each is renamed first, so that a crash never
// leaves half a task directory under a task's name. What is wrong with one directory does not
// stop the others. It also removes what an interrupted Clean has left, and copies of [Dir.Keep] that are a day old.
func (d *Dir) Clean(ctx context.Context, o CleanOptions) ([]Cleaned, error) {
	if !o.DryRun {
		if err := d.emptyTrash(); err != nil {
			return nil, fmt.Errorf("clean %s: %w", d.path, err)
		}
		if err := d.cleanKept(ctx, o.OlderThan); err != nil {
			return nil, fmt.Errorf("clean %s: %w", d.path, err)
		}
	}
	tasks, err := d.TaskDirs()
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", d.path, err)
	}
	var all []Cleaned
	for _, task := range tasks {
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		all = append(all, d.clean(task, o))
	}
	return all, nil
}

func (d *Dir) clean(task string, o CleanOptions) Cleaned {
	c, trash := d.judge(task, o)
	if trash != "" {
		// The task has no directory any more, so it needs no lease, however long this takes.
		c.Err = errors.Join(c.Err, removeTree(trash))
	}
	return c
}

// judge decides about a directory, and gives the new name of one that it has thrown away.
func (d *Dir) judge(task string, o CleanOptions) (c Cleaned, trash string) {
	c = Cleaned{Task: task, Path: d.TaskDir(task)}
	lease, err := d.Lease(task, Cleaner)
	if err != nil {
		c.Err = err
		return c, ""
	}
	defer lease.Release()
	if c.LastOwned, c.Err = o.LastOwned(c.Path); c.Err != nil || time.Since(c.LastOwned) < o.OlderThan {
		return c, ""
	}
	c.Remove = true
	if o.DryRun {
		return c, ""
	}
	if trash, c.Err = d.throwAway(task); c.Err != nil {
		c.Remove = false
		return c, "" // the next cleaning sees what became of it
	}
	return c, trash
}

// throwAway renames a task's directory; it is gone when that is on the disk.
func (d *Dir) throwAway(task string) (trash string, err error) {
	trash = filepath.Join(d.path, fmt.Sprintf("%s%d-%s", trashMark, time.Now().UnixNano(), task))
	if err := os.Rename(d.TaskDir(task), trash); err != nil {
		return "", err
	}
	failpoint.Hit("clean-renamed")
	return trash, syncDir(d.path)
}

// RemoveAll removes the directories of all tasks, so that the application begins with
// nothing on this host. It fails before anything is removed while a task is leased, or when [Dir.Removable]
// says no.
func (d *Dir) RemoveAll(mayGo func(taskDir string) error) error {
	tasks, err := d.TaskDirs()
	if err != nil {
		return err
	}
	var leases []*Lease
	defer func() {
		for _, l := range leases {
			l.Release()
		}
	}()
	for _, task := range tasks {
		l, err := d.Lease(task, "the removal of all state")
		if err != nil {
			return err
		}
		leases = append(leases, l)
	}
	if err := d.Removable(mayGo); err != nil {
		return err
	}
	var errs []error
	for _, task := range tasks {
		_, err := d.throwAway(task)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, d.emptyTrash())...)
}

// Removable tells whether [Dir.RemoveAll] would leave nothing and lose nothing: mayGo gives an error for a task's directory
// that must stay, and one behind a symbolic link is not ours to remove. The error names all such directories.
func (d *Dir) Removable(mayGo func(taskDir string) error) error {
	tasks, err := d.TaskDirs()
	if err != nil {
		return err
	}
	linked, err := d.LinkedTaskDirs()
	if err != nil {
		return err
	}
	var errs []error
	for _, task := range tasks {
		errs = append(errs, mayGo(d.TaskDir(task)))
	}
	for _, task := range linked {
		errs = append(errs, fmt.Errorf("%s: a symbolic link: what it leads to is removed by hand, and then the link", d.TaskDir(task)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nothing is removed: there are directories that must stay: migrate them, or remove them by hand: %w", err)
	}
	return nil
}

func (d *Dir) emptyTrash() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trashMark) {
			errs = append(errs, removeTree(filepath.Join(d.path, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func removeTree(dir string) error { return failpoint.RemoveAll(dir, "clean-removing") }
