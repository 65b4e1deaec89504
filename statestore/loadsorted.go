package statestore

import (
	"errors"
	"fmt"
	"iter"
)

// sortedIngester is an engine that takes whole tables.
type sortedIngester interface {
	IngestSorted(op, scratch string, prefix []byte, rows func(add func(key, value []byte) error) error) error
}

// scratchName is a directory for tables that are being made.
const scratchName = "tidemark.loading"

// LoadSorted is [TaskStore.Load] for large amounts: the rows, in strictly ascending order of
// their keys and in the form in which the database keeps them (docs/format.md), become
// whole tables, past the write-ahead log. They are on the disk when it returns; after an
// error, or a crash before that, Clear and begin again. It gives [errors.ErrUnsupported] for a
// store that does not lie in the database (in memory, a user's own): use Load.
func (s *TaskStore) LoadSorted(name string, rows iter.Seq2[Row, error]) error {
	st, err := s.beginRestore("load", name)
	if err != nil {
		return err
	}
	db, ok := st.rows.(sortedIngester)
	if !ok || st.rows != s.db || st.spec.Kind != KindKeyValue && st.spec.Kind != KindTimestampedKeyValue {
		return fmt.Errorf("load store %q of %s: %w", name, s.dir, errors.ErrUnsupported)
	}
	if o := s.committed.Load().stores[st.id].offset; !o.IsAbsent() {
		return fmt.Errorf("load store %q of %s: it has an offset of its own, %v; Clear begins anew", name, s.dir, o)
	}
	// An empty batch says that the store is incomplete; the sync brings it, and all before
	// it, to the disk before the tables, which do not wait for the log.
	if err := errors.Join(s.Load(name, nil), s.Sync()); err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	err = db.IngestSorted("load", s.o.FS.PathJoin(s.dir, scratchName), st.prefix[:], func(add func(key, value []byte) error) error {
		for row, err := range rows {
			if err == nil && st.timestamped() && len(row.Value) < 8 {
				err = fmt.Errorf("the value of key %.40q has %d bytes: in a timestamped store it begins with 8 bytes of timestamp", row.Key, len(row.Value))
			}
			if err == nil {
				err = add(row.Key, row.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load store %q of %s: %w", name, s.dir, advised(err, "then Clear the store and load it anew"))
	}
	return nil
}
