package migration

import (
	"errors"
	"io/fs"
	"iter"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/statestore"
)

// badDatabase is a store's old database that cannot be read, now or later.
type badDatabase struct{ cause error }

func (e *badDatabase) Error() string { return e.cause.Error() }
func (e *badDatabase) Unwrap() error { return e.cause }

// badOr tells damage (and formats that are too old) from what will be over: a database that
// is in use, missing rights, too many open files.
func badOr(err error) error {
	for _, passing := range []error{statestore.ErrLocked, fs.ErrPermission, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return &badDatabase{err}
}

// foreignSource is a Pebble database as a Source.
type foreignSource struct{ *statestore.Foreign }

func (s foreignSource) Rows() iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		for row, err := range s.Foreign.Rows() {
			if err != nil {
				err = badOr(err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// giveUp takes back what was loaded of a bad database. A logged store is restored from its
// changelog, and the database set aside; one that is not logged is left to a person.
func (t *Task) giveUp(s *statestore.TaskStore, e *Entry, bad *badDatabase, o Options) error {
	if err := s.Clear(e.Store); err != nil {
		return err
	}
	failpoint.Hit("migration-given-up")
	e.attention = true
	log := o.logger().With("task", t.Task, "store", e.Store, "error", bad.cause)
	if e.Topic == "" {
		e.Action, e.Reason = ActionSkip, "not logged, and its database cannot be read: "+bad.Error()
		log.Error("a store that is not logged was not taken over: its database cannot be read")
		return nil
	}
	e.Action, e.Reason = ActionRestore, "its database cannot be read: "+bad.Error()+": restore from changelog "+e.Topic
	var renamed string
	if d, ok := t.storeDir(e.Store); ok {
		var err error
		if renamed, err = quarantine(d.path, time.Now()); err != nil {
			return err
		}
	}
	failpoint.Hit("migration-bad-quarantined")
	log.Warn("a legacy database was quarantined, its store is restored from the changelog", "now", renamed)
	return nil
}
