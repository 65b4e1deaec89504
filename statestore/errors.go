package statestore

import (
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

var (
	// ErrClosed is returned by calls on a closed task store.
	ErrClosed = errors.New("task store is closed")
	// ErrFailed is returned by every call after the database failed (disk full, input or
	// output error, damage): wrapped with the first cause and what to do. The task store
	// cannot be used any more; Close it.
	ErrFailed = errors.New("task store has failed")
	// ErrCorrupt marks an error of Open, or a failure, that comes from damaged or missing
	// files: set the directory aside and restore the stores from their changelogs.
	ErrCorrupt = pebbledb.ErrCorrupt
	// ErrLocked is returned by Open when the database is open already, in this process
	// (also as one that failed and was left behind) or in another.
	ErrLocked = errors.New("task store is in use")
	// ErrNoStore is returned by OpenReadOnly for a directory without a task store, or without
	// one that was ever finished.
	ErrNoStore = errors.New("there is no task store")
	// ErrNewerFormat is returned by Open for a database of a newer version of Tidemark.
	ErrNewerFormat = errors.New("task store was written by a newer version of Tidemark")
	// ErrSpecChanged is returned by Register when a store is not what it was.
	ErrSpecChanged = errors.New("store was declared differently before")
	// ErrSealed is returned when a sealed interval is in the way: it must be released (or
	// dropped) first.
	ErrSealed = errors.New("a sealed interval has not been released")
	// ErrUncommitted is returned when uncommitted writes are in the way.
	ErrUncommitted = errors.New("there are uncommitted writes")
	// ErrOverlayFull is returned by Put and Delete when one commit cannot hold more.
	ErrOverlayFull = table.ErrFull
	// ErrTooLarge is returned by Put and Delete for a key or value over 256 MiB.
	ErrTooLarge = table.ErrTooLarge
	// ErrExpired is returned by a put of a window or session that is older than the store's
	// retention: nothing was written, and the record counts as dropped. It is no failure.
	ErrExpired = kinds.ErrExpired
)

// Abandoned counts the databases that failed in this process and could not be closed.
// Each keeps some goroutines, file descriptors and its lock until the process ends.
func Abandoned() int64 { return pebbledb.Abandoned() }

// failure makes of the first cause the error that every later call returns.
func (s *TaskStore) failure(cause error) error {
	return fmt.Errorf("%w: %s: %w; %s", ErrFailed, s.dir, cause, remedy(cause))
}

// usable is the first line of every call.
func (s *TaskStore) usable() error {
	if s.closed.Load() {
		return fmt.Errorf("%w: %s", ErrClosed, s.dir)
	}
	return s.db.Err()
}
