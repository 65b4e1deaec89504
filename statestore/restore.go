package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// RestoreRecord is one record of a changelog.
type RestoreRecord struct {
	Key, Value []byte // value nil = deleted; both are copied
	// Timestamp of the record, in milliseconds; kept by a timestamped store.
	Timestamp int64
}

// Restore applies records of a store's changelog, in their order, with the offset of the
// next one in the same batch. The store is incomplete until [TaskStore.Complete]. There
// must be no uncommitted writes ([ErrUncommitted]). While a restore goes on, the goroutine
// that does it is the task store's owner.
func (s *TaskStore) Restore(name string, records []RestoreRecord, next int64) error {
	st, err := s.beginRestore("restore", name)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	p, err := s.nextProgress(map[string]Offset{name: At(next)})
	if err != nil {
		return fmt.Errorf("restore store %q of %s: %w", name, s.dir, err)
	}
	if at, ok := s.committed.Load().stores[st.id].offset.Next(); ok && at > next {
		return fmt.Errorf("restore store %q of %s: offset %d is before the store's, %d; Clear begins anew", name, s.dir, next, at)
	}
	p.stores[st.id] = storeProgress{offset: At(next)}
	s.bypass(st)
	return s.apply("restore", p, st.restoredSize(records), func(b *pebble.Batch) error { return st.fillRestored(b, records) })
}

func (st *store) restoredSize(records []RestoreRecord) int {
	n := len(records) * (storePrefixLen + entryOverhead)
	for i := range records {
		n += len(records[i].Key) + len(records[i].Value)
	}
	return n
}

func (st *store) fillRestored(b *pebble.Batch, records []RestoreRecord) error {
	for i := range records {
		r := &records[i]
		if r.Value == nil {
			op := b.DeleteDeferred(storePrefixLen + len(r.Key))
			copy(op.Key[copy(op.Key, st.prefix[:]):], r.Key)
			if err := op.Finish(); err != nil {
				return err
			}
			continue
		}
		stamp := 0
		if st.timestamped() {
			stamp = 8
		}
		op := b.SetDeferred(storePrefixLen+len(r.Key), stamp+len(r.Value))
		copy(op.Key[copy(op.Key, st.prefix[:]):], r.Key)
		if stamp > 0 {
			binary.BigEndian.PutUint64(op.Value, uint64(r.Timestamp))
		}
		copy(op.Value[stamp:], r.Value)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// beginRestore checks what all writes beside the overlay need.
func (s *TaskStore) beginRestore(op, name string) (*store, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	st, err := s.find(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := s.nothingUncommitted(); err != nil {
		return nil, fmt.Errorf("%s store %q of %s: %w", op, name, s.dir, err)
	}
	return st, nil
}

func (s *TaskStore) nothingUncommitted() error {
	if s.sealed != nil {
		return ErrSealed
	}
	if s.table.DirtyCount() > 0 {
		return ErrUncommitted
	}
	return nil
}

// bypass prepares the table for writes of the store that do not pass through it.
func (s *TaskStore) bypass(st *store) {
	s.stopWarming()
	if s.table.Holds(st.number) {
		s.table.Reset()
	}
	s.table.SetComplete(st.number, false)
}

// Complete ends a restore: every registered store is complete at p.ID, with the task's
// progress p. offsets replaces the offsets of the stores that it names. p is taken as it is,
// also an id or stream time before the recorded ones; positions merge.
func (s *TaskStore) Complete(p Progress, offsets map[string]Offset) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := errors.Join(p.validate(), s.nothingUncommitted()); err != nil {
		return fmt.Errorf("complete %s: %w", s.dir, err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	next, err := s.nextProgress(offsets)
	if err != nil {
		return fmt.Errorf("complete %s: %w", s.dir, err)
	}
	next.id, next.streamTime = p.ID, p.StreamTime
	next.positions = mergePositions(next.positions, p.Positions)
	for id, sp := range next.stores {
		sp.complete = true
		next.stores[id] = sp
	}
	return s.apply("complete", next, 0, func(*pebble.Batch) error { return nil })
}

// Clear forgets a store: its data and its offset, in one batch; and records the changelog
// with which it was registered. The store is empty and incomplete.
func (s *TaskStore) Clear(name string) error {
	st, err := s.beginRestore("clear", name)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	p, err := s.nextProgress(nil)
	if err != nil {
		return fmt.Errorf("clear store %q of %s: %w", name, s.dir, err)
	}
	p.stores[st.id] = storeProgress{}
	c := s.catalog.Load().clone()
	c.specs[st.id] = st.spec
	record, err := encodeCatalog(c)
	if err != nil {
		return fmt.Errorf("clear store %q of %s: encode catalog: %w", name, s.dir, err)
	}
	s.bypass(st)
	lower, upper := storeBounds(st.id)
	err = s.apply("clear", p, len(record), func(b *pebble.Batch) error {
		return errors.Join(b.DeleteRange(lower, upper, nil), b.Set(keyCatalog, record, nil))
	})
	if err != nil {
		return err
	}
	s.catalog.Store(c)
	s.table.SetComplete(st.number, true)
	return nil
}
