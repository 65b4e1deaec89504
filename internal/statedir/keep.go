package statedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptMark stands in the name of a copy of a task directory, between the task's id and the time.
const keptMark = ".kept-"

// keptFor is how long such a copy stays at least: time for somebody to look.
const keptFor = 24 * time.Hour

const nameTime = "20060102T150405Z"

// Keep has snapshot make a copy of a task directory, which is about to lose data that may exist nowhere
// else, with the reason in a file. There is one copy of a task at most: while there is one, it is the one that counts,
// and made is false. Clean removes it after a day, or its own delay if that is longer. The task may be open.
func (d *Dir) Keep(taskID, reason string, snapshot func(dir string) error) (path string, made bool, err error) {
	if _, ok := parseTaskID(taskID); !ok {
		return "", false, fmt.Errorf("keep a copy of %q in %s: that is not the id of a task", taskID, d.path)
	}
	kept, err := d.kept()
	if err != nil {
		return "", false, err
	}
	for _, k := range kept {
		switch {
		case k.task != taskID:
		case !k.partial:
			return k.path, false, nil
		default: // a crash left it
			if err := os.RemoveAll(k.path); err != nil {
				return "", false, fmt.Errorf("keep a copy of task %s: %w", taskID, err)
			}
		}
	}
	now := time.Now().UTC()
	path = d.TaskDir(taskID) + keptMark + now.Format(nameTime)
	if err := snapshot(path); err != nil {
		return "", false, fmt.Errorf("keep a copy of task %s in %s: %w", taskID, path, err)
	}
	text := fmt.Sprintf("Kept on %s: a copy of the task's directory, before a store of it was emptied.\n\n%s\n\n"+
		"The store is restored from its changelog. Nothing reads this copy: look into it, or remove it.\n", now.Format(time.RFC3339), reason)
	if err := errors.Join(writeDurably(filepath.Join(path, asideFile), []byte(text)), syncDir(d.path)); err != nil {
		return "", false, fmt.Errorf("keep a copy of task %s in %s: %w", taskID, path, err)
	}
	return path, true, nil
}

// keptCopy is a copy that Keep has made, or was making.
type keptCopy struct {
	task, path string
	at         time.Time
	partial    bool
}

func (d *Dir) kept() (all []keptCopy, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list copies of task directories: %w", err)
	}
	for _, e := range entries {
		id, rest, ok := strings.Cut(e.Name(), keptMark)
		if _, isTask := parseTaskID(id); !ok || !isTask || !e.IsDir() {
			continue
		}
		stamp, _, partial := strings.Cut(rest, ".")
		at, err := time.Parse(nameTime, stamp)
		if err != nil {
			continue // not ours
		}
		all = append(all, keptCopy{id, filepath.Join(d.path, e.Name()), at, partial})
	}
	return all, nil
}

// cleanKept removes the copies that are old enough.
func (d *Dir) cleanKept(ctx context.Context, olderThan time.Duration) error {
	all, err := d.kept()
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range all {
		if ctx.Err() == nil && time.Since(k.at) > max(olderThan, keptFor) {
			errs = append(errs, removeTree(k.path))
		}
	}
	return errors.Join(errs...)
}
