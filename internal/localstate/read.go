package localstate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Adopt takes over what another program left in the task directories. It does nothing but list them when there
// is nothing; options is asked only when there is something. The caller has the directory's lock.
func Adopt(ctx context.Context, dir *statedir.Dir, log *slog.Logger, options func() (migration.Options, error)) error {
	tasks, err := dir.TaskDirs()
	if err != nil {
		return err
	}
	linked, err := dir.LinkedTaskDirs()
	if err != nil {
		return err
	}
	legacy := false
	for _, id := range slices.Concat(tasks, linked) {
		found, err := migration.HasLegacy(dir.TaskDir(id))
		if err != nil {
			log.Warn("task directory cannot be listed", "task", id, "error", err)
		}
		legacy = legacy || found
	}
	if !legacy {
		return nil
	}
	o, err := options()
	if err != nil {
		return err
	}
	o.Held, o.Logger = true, log
	report, err := migration.Apply(ctx, dir.Path(), o)
	if err != nil {
		return err
	}
	for _, note := range report.Notes {
		log.Warn("legacy state", "note", note)
	}
	for _, t := range report.Tasks {
		for _, e := range t.Entries {
			log.Info("legacy state", "task", t.Task, "store", e.Store, "state", e.State, "action", e.Action, "reason", e.Reason)
		}
	}
	return nil
}

// Read scans the task directories: how far each task is on this host, and what could not be read. It tells listener, if
// there is one, how far it is.
func Read(ctx context.Context, dir *statedir.Dir, resources *statestore.Resources, log *slog.Logger, listener func(offsetcache.ScanProgress)) (*offsetcache.Cache, *offsetcache.Scan, error) {
	tasks, err := dir.TaskDirs()
	if err != nil {
		return nil, nil, err
	}
	var dirs []offsetcache.Directory
	for _, id := range tasks {
		dirs = append(dirs, offsetcache.Directory{Task: id, Path: dir.TaskDir(id)})
	}
	if look, err := statedir.LookApp(dir.Path()); err == nil {
		var other []string
		for _, name := range look.Other {
			if statedir.IsTaskID(name) { // a link to a directory, or something that hides the task's state
				dirs = append(dirs, offsetcache.Directory{Task: name, Path: dir.TaskDir(name)})
			} else {
				other = append(other, name)
			}
		}
		if len(other) > 0 {
			log.Info("not of a task, and left alone", "dir", dir.Path(), "names", other)
		}
	}
	cache := offsetcache.New()
	scan, err := cache.Scan(ctx, dirs, offsetcache.ScanOptions{Resources: resources, Logger: log, OnProgress: listener})
	if err != nil {
		return nil, nil, fmt.Errorf("read task directories: %w", err)
	}
	log.Info("task directories were read", "with-state", scan.Opened, "empty", scan.Empty, "failed", len(scan.Failed),
		"took", scan.Elapsed, "replayed-bytes", scan.ReplayedBytes)
	return cache, scan, nil
}
