package migration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/filelock"
)

// lockName is the file that whoever works in an application's directory has locked.
const lockName = "tidemark.lock"

// Apply does what [Plan] says, and gives the plan as it was before. For each store: its data
// with offset and positions into the task's store, on the disk; then the old database and
// files are renamed. It can be killed at any point and run again: what is done stays done,
// what was half done is done again.
//
// A task that cannot be migrated is named in the notes, and the others go on. An error means
// that nothing at all could be done: the directory cannot be read, or somebody uses it.
func Apply(ctx context.Context, dir string, o Options) (*Report, error) {
	a, err := find(dir, o)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(a, o)
	if err != nil {
		return nil, fmt.Errorf("migration of %s: %w", a.path, err)
	}
	r, err := planApplication(ctx, a, o)
	if err == nil {
		r.reserveSpace()
		err = inParallel(ctx, o.moveJobs(len(r.Tasks)), len(r.Tasks), func(i int) error {
			r.Tasks[i].apply(ctx, o)
			return nil
		})
	}
	if err = errors.Join(err, unlock()); err != nil {
		return nil, fmt.Errorf("migration of %s: %w", a.path, err)
	}
	r.finish()
	return r, nil
}

func lock(a application, o Options) (unlock func() error, err error) {
	if err := heldByKafkaStreams(filepath.Join(a.path, ".lock")); err != nil {
		return nil, err
	}
	if o.Held {
		return func() error { return nil }, nil
	}
	l, err := filelock.Take(filepath.Join(a.path, lockName), "")
	if err != nil {
		return nil, err
	}
	return l.Close, nil
}

// apply migrates one task. What goes wrong is noted: it concerns this task only.
func (t *Task) apply(ctx context.Context, o Options) {
	err := t.applySteps(ctx, o)
	if err == nil {
		return
	}
	t.attention = true
	t.notes = append(t.notes, fmt.Sprintf("task %s: %v: what was not done is left as it was; run the migration again", t.Task, err))
	o.logger().Warn("legacy state was not taken over", "task", t.Task, "dir", t.dir, "error", err)
}

func (t *Task) applySteps(ctx context.Context, o Options) error {
	if t.listing != nil {
		return t.listing
	}
	if i := slices.IndexFunc(t.Files, func(f File) bool { return f.Status == StatusUnreadable }); i >= 0 {
		return fmt.Errorf("%s: %s", t.Files[i].Path, t.Files[i].Reason)
	}
	if o.Keep && t.touches() {
		if err := makeKept(t.dir); err != nil {
			return err
		}
	}
	if err := t.moveStores(ctx, o); err != nil {
		return err
	}
	if err := t.splitOwn(); err != nil {
		return err
	}
	return t.setFilesAside(o)
}

// removeTemporary removes what a write of the file that was cut off has left: the file itself
// is whole, so this was never part of it.
func (o Options) removeTemporary(path string) error {
	if o.Keep {
		return nil
	}
	err := os.Remove(path + temporarySuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	failpoint.Hit("migration-temporary-removed")
	return err
}

// splitOwn gives stores that a program keeps itself their line of the task's .checkpoint.
// One that has a file already keeps it: it is newer.
func (t *Task) splitOwn() error {
	for _, e := range t.Entries {
		if !e.own {
			continue
		}
		path := filepath.Join(t.dir, storeCheckpoint+e.Store)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		if err := writeOffsets(path, []Entry{e}); err != nil {
			return err
		}
		failpoint.Hit("migration-split")
	}
	return nil
}

// touches tells whether anything is to be renamed.
func (t *Task) touches() bool {
	return slices.ContainsFunc(t.Files, func(f File) bool {
		return f.Status == StatusOK && f.Kind != KindCheckpointStore && f.Kind != KindProcess
	}) ||
		slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.Action == ActionMigrate })
}

// setFilesAside is the last step: everything that the files say is on the disk elsewhere, or
// is not used. The file of a store that keeps its offset in it stays; and all do while there is
// data that would be taken over if a person said that it can be believed.
func (t *Task) setFilesAside(o Options) error {
	now := time.Now()
	waits := slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.waits })
	var errs []error
	for _, f := range t.Files {
		switch {
		case f.Status == StatusQuarantined:
			renamed, err := quarantine(f.Path, now)
			o.logger().Warn("a legacy file was quarantined, its stores are restored from their changelogs",
				"file", f.Path, "now", renamed, "reason", f.Reason)
			errs = append(errs, err)
			failpoint.Hit("migration-quarantined")
		case f.Status == StatusOK && !waits && (f.Kind == KindCheckpoint || f.Kind == KindPosition || f.movable):
			// The temporary one first: when the file has another name, nobody looks for it any more.
			err := o.removeTemporary(f.Path)
			if err == nil {
				_, err = setAside(f.Path, migratedSuffix)
			}
			errs = append(errs, err)
			failpoint.Hit("migration-file-renamed")
		}
	}
	return errors.Join(errs...)
}
