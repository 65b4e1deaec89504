package statestore

import (
	"fmt"
	"iter"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/pebbledb"
)

// Foreign is a Pebble database that another program made, open for reading: what a
// migration takes a store's entries from. Nothing in its directory changes.
type Foreign struct {
	dir       string
	resources *Resources
	private   bool
	db        *pebbledb.DB
}

// OpenForeign opens the database in dir. It must have Pebble's default comparer, and a
// format that the linked version of Pebble reads. Errors wrap [ErrNoStore], [ErrLocked] or
// [ErrCorrupt] where they apply.
func OpenForeign(dir string, o ReadOptions) (*Foreign, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	f := &Foreign{dir: absolute(o.FS, dir), resources: o.Resources}
	if _, err := lookForDatabase(o.FS, f.dir); err != nil {
		return nil, fmt.Errorf("open database %s for reading: %w", f.dir, err)
	}
	if f.resources == nil {
		f.resources, f.private = readingResources(), true
	}
	db, err := pebbledb.Open(f.dir, pebbledb.Options{
		FS: o.FS, Resources: f.resources.r, Log: o.Logger.With("dir", f.dir), MemTableSize: readMemTableBytes, ReadOnly: true,
		BeforeReplay: o.BeforeReplay, CloseTimeout: defaultCloseTimeout,
		WrapFailure: func(err error) error { return fmt.Errorf("database %s: %w", f.dir, err) },
	})
	if err != nil {
		f.giveBack()
		return nil, fmt.Errorf("open database %s for reading: %w", f.dir, markOpen(err))
	}
	f.db = db
	return f, nil
}

// Rows gives all entries in key order. An error ends the loop: it is the second value of the
// last turn, with an empty row.
func (f *Foreign) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		it, err := f.db.NewIter("read", nil, nil)
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer it.Close() // its error is that of the last move
		for ok := it.First(); ok; ok = it.Next() {
			if !yield(Row{Key: it.Key(), Value: it.Value()}, nil) {
				return
			}
		}
		if err := it.Err(); err != nil {
			yield(Row{}, err)
		}
	}
}

// Close gives lock and memory back. Calling it again does nothing.
func (f *Foreign) Close() error {
	if f.db == nil {
		return nil
	}
	err := f.db.Close()
	f.db = nil
	f.giveBack()
	return err
}

func (f *Foreign) giveBack() {
	if f.private {
		f.resources.r.Close()
	}
}
