package localstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/statestore"
)

// holding is a task's directory that is leased. store is nil until it is open.
type holding struct {
	lease *statedir.Lease
	store *statestore.TaskStore
}

// ErrNothingOpen is returned by [Leases.Snapshot].
var ErrNothingOpen = errors.New("no task store is open in this process")

// Snapshot puts a snapshot of each open store below dir, as <app>/<task>, while their tasks go on; the error names those of
// which there is none. The end of ctx ends it behind the task under way.
func (l *Leases) Snapshot(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := l.checkSnapshotDir(dir); err != nil {
		return err
	}
	open := map[string]*statestore.TaskStore{}
	var ids []string
	l.held.Range(func(id, h any) bool {
		if store := h.(holding).store; store != nil {
			ids = append(ids, id.(string))
			open[id.(string)] = store
		}
		return true
	})
	if len(ids) == 0 {
		return ErrNothingOpen
	}
	slices.Sort(ids)
	var errs []error
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, fmt.Errorf("task %s: there is no snapshot of it, nor of the %d tasks behind it: %w", id, len(ids)-i-1, err))...)
		}
		if err := open[id].Snapshot(filepath.Join(dir, filepath.Base(l.Dir.Path()), id)); err != nil {
			errs = append(errs, fmt.Errorf("task %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// checkSnapshotDir refuses a place with something in it, and one in the state directory, where a snapshot would be taken for state.
func (l *Leases) checkSnapshotDir(dir string) error {
	there, err := os.ReadDir(dir)
	switch {
	case err == nil && len(there) > 0:
		return fmt.Errorf("%s is not empty: give a directory that is empty, or not there yet", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	state, err := os.Stat(filepath.Dir(l.Dir.Path()))
	if err != nil {
		return err
	}
	for p := followed(dir); ; p = filepath.Dir(p) {
		if info, err := os.Stat(p); err == nil && os.SameFile(info, state) {
			return fmt.Errorf("%s is inside of the state directory, %s: give a place beside it", dir, filepath.Dir(l.Dir.Path()))
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// followed is what there is already of dir, with its links followed: one may lead to any place in the state directory.
func followed(dir string) string {
	for p := dir; ; p = filepath.Dir(p) {
		if to, err := filepath.EvalSymlinks(p); err == nil {
			return to
		}
		if p == filepath.Dir(p) {
			return p
		}
	}
}
