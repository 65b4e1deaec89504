package offsetcache

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/statestore"
)

var (
	// ErrLegacy: the directory holds state of another program that was not taken over yet.
	ErrLegacy = errors.New("there is legacy state that was not taken over")
	// ErrKept: the directory holds what a migration was told to keep.
	ErrKept = errors.New("a migration was told to keep what is there (tidemark.keep-migrated)")
	// ErrNeverOwned: the directory does not say when the task was owned.
	ErrNeverOwned = errors.New("there is no record of when the task was owned")
)

// LastOwned tells when somebody had the task of a directory last, by what its store itself
// records; for the cleaner. A file's time means nothing: nothing may have changed in the
// directory of a task that runs, and a copy has new times. A directory without a store, and
// one that is not [Removable], gives an error: it is not for the cleaner.
func LastOwned(dir string, o statestore.ReadOptions) (time.Time, error) {
	if err := Removable(dir); err != nil {
		return time.Time{}, err
	}
	v, err := statestore.OpenReadOnly(dir, o)
	if err != nil {
		return time.Time{}, err
	}
	m := v.Metadata()
	last := m.Owner.Last
	if m.Committed.After(last) { // who commits owns
		last = m.Committed
	}
	if err := v.Close(); err != nil {
		return time.Time{}, err
	}
	if last.IsZero() {
		return time.Time{}, fmt.Errorf("%s: %w", dir, ErrNeverOwned)
	}
	return last, nil
}

// Removable gives an error for a task directory that nobody but a person may remove: what is in it may
// exist nowhere else. [ErrLegacy] or [ErrKept]; or it cannot be seen.
func Removable(dir string) error {
	kept, err := migration.IsKept(dir)
	if err != nil {
		return err
	}
	if kept {
		return fmt.Errorf("%s: %w", dir, ErrKept)
	}
	legacy, err := migration.HasLegacy(dir)
	if err != nil {
		return err
	}
	if legacy {
		return fmt.Errorf("%s: %w", dir, ErrLegacy)
	}
	return nil
}
