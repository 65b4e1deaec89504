package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// RestoreRecord is one record of a changelog.
type RestoreRecord struct {
	Key, Value []byte // value nil = deleted; both are copied
	// Timestamp of the record, in milliseconds; kept by a timestamped store.
	Timestamp int64
	// Schema is the schema version of the value, which is the Spec.SchemaVersion of the program
	// that wrote the record; 0 = it did not count.
	Schema uint32
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
	p, err := s.restoredProgress(st, next)
	if err != nil {
		return err
	}
	return s.applyRestored("restore", st, p, records)
}

// restoredProgress is the task's with a store that is restored up to next, and incomplete.
func (s *TaskStore) restoredProgress(st *store, next int64) (*progress, error) {
	p, err := s.nextProgress(map[string]Offset{st.spec.Name: At(next)})
	if err != nil {
		return nil, fmt.Errorf("restore store %q of %s: %w", st.spec.Name, s.dir, err)
	}
	if at, ok := s.committed.Load().stores[st.id].offset.Next(); ok && at > next {
		return nil, fmt.Errorf("restore store %q of %s: offset %d is before the store's, %d; Clear begins anew", st.spec.Name, s.dir, next, at)
	}
	p.stores[st.id] = p.stores[st.id].incomplete(At(next))
	return p, nil
}

func (st *store) restoredSize(records []RestoreRecord) int {
	n := len(records) * (storePrefixLen + entryOverhead)
	for i := range records {
		n += len(records[i].Key) + len(records[i].Value)
	}
	return n
}

func (st *store) fillRestored(b engine.Batch, records []RestoreRecord) error {
	buf := make([]byte, 0, 8)
	for i := range records {
		r := &records[i]
		if r.Value == nil {
			engine.Delete(b, st.prefix[:], r.Key)
			continue
		}
		var stamp []byte
		if st.timestamped() {
			stamp = binary.BigEndian.AppendUint64(buf[:0], uint64(r.Timestamp))
		}
		engine.Set(b, st.prefix[:], r.Key, stamp, r.Value)
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
	next.id, next.streamTime, next.committed = p.ID, p.StreamTime, time.Now().UnixMilli()
	next.positions = mergePositions(next.positions, p.Positions)
	for _, st := range s.registered() {
		next.stores[st.id] = p.completeAt(st, next.stores[st.id])
		st.endRestore(next)
	}
	return s.apply("complete", next, 0, func(engine.Batch) error { return nil })
}

// endRestore gives the store the time back that it had before, unless the restore brought a later one.
func (st *store) endRestore(p *progress) {
	if sp := p.stores[st.id]; sp.before.Known {
		st.clock.Advance(sp.before.Time)
		sp.clock, sp.before = st.clock, kinds.Clock{}
		p.stores[st.id] = sp
	}
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
	segmentMS := c.specs[st.id].segmentMS
	c.specs[st.id] = st.spec.recorded()
	record, err := encodeCatalog(c)
	if err != nil {
		return fmt.Errorf("clear store %q of %s: encode catalog: %w", name, s.dir, err)
	}
	s.bypass(st)
	lower, upper := storeBounds(st.id)
	if x, ok := st.rows.(*externalRows); ok {
		// Not behind the database as always: a crash that took back only what the store forgot would
		// leave it at an offset of a changelog that may not be the recorded one any more.
		err := x.applyAt("clear", p, 0, func(b engine.Batch) error { b.DeleteRange(lower, upper); return nil })
		if err = errors.Join(err, x.Sync()); err != nil {
			return err
		}
	}
	err = s.applyRows("clear", p, len(record), func(b engine.Batch, rows engine.Engine) error {
		if rows == st.rows {
			b.DeleteRange(lower, upper)
		}
		if rows == s.db {
			engine.Set(b, nil, keyCatalog, nil, record)
		}
		return nil
	})
	if err == nil && st.spec.Store != nil && c.specs[st.id].segmentMS != segmentMS {
		err = s.db.Sync() // before there are rows in other segments
	}
	if err != nil {
		return err
	}
	s.catalog.Store(c)
	st.cleared(c.specs[st.id].segmentMS)
	s.table.SetComplete(st.number, true)
	return nil
}
