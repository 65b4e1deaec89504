package statestore

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// applyRestored applies records of a store's changelog in one batch with p, in which the
// store's progress is already what it is to be, but for its clock. s.write is held.
func (s *TaskStore) applyRestored(op string, st *store, p *progress, records []RestoreRecord) error {
	last := s.committed.Load().stores[st.id]
	records, err := st.presentRecords(records)
	if err != nil {
		return fmt.Errorf("%s store %q of %s: %w", op, st.spec.Name, s.dir, err)
	}
	switch {
	case st.versioned != nil:
		err = s.restoreVersions(op, st, p, records)
	case st.layout != nil:
		err = s.restoreSegments(op, st, p, records)
	default:
		s.bypass(st)
		return s.applyRows(op, p, st.restoredSize(records), st.only(func(b engine.Batch) error { return st.fillRestored(b, records) }))
	}
	if err != nil {
		st.clock = last.clock
	}
	st.moved(last.before)
	return err
}

// segmented is what window and session stores know of the keys in their changelogs.
type segmented interface {
	Observe(key []byte) error
	Restored(key []byte) (row []byte, err error)
}

// restoreSegments restores a window or session store. Records that have expired by the end
// of the batch are not written.
func (s *TaskStore) restoreSegments(op string, st *store, p *progress, records []RestoreRecord) error {
	var logic segmented
	if st.window != nil {
		logic = &st.window.w
	} else {
		logic = &st.session.x
	}
	for i := range records {
		if err := logic.Observe(records[i].Key); err != nil {
			return st.malformed(op, s.dir, records, i, err)
		}
	}
	setClock(p, st)
	oldest := st.layout.Oldest(&st.clock)
	s.bypass(st)
	err := s.applyRows(op, p, st.restoredSize(records), st.only(func(b engine.Batch) error {
		if oldest > st.expired {
			b.DeleteRange(st.bounds(nil, st.layout.Expired(&st.clock)))
		}
		return st.fillSegments(b, logic, records)
	}))
	if err == nil {
		st.expired = oldest
	}
	return err
}

func (st *store) fillSegments(b engine.Batch, logic segmented, records []RestoreRecord) error {
	var stamp [8]byte
	for i := range records {
		r := &records[i]
		row, err := logic.Restored(r.Key)
		switch {
		case err != nil:
			return err
		case row == nil: // expired
		case r.Value == nil:
			engine.Delete(b, st.prefix[:], row)
		case st.timestamped():
			binary.BigEndian.PutUint64(stamp[:], uint64(r.Timestamp))
			engine.Set(b, st.prefix[:], row, stamp[:], r.Value)
		default:
			engine.Set(b, st.prefix[:], row, nil, r.Value)
		}
	}
	return nil
}

// restoreVersions restores a versioned store. A version moves the rows around it, of the
// database and of this batch, so it goes through the overlay, which is empty before and after.
func (s *TaskStore) restoreVersions(op string, st *store, p *progress, records []RestoreRecord) error {
	s.stopWarming()
	if err := s.putVersions(op, st, records); err != nil {
		s.table.Reset()
		return err
	}
	s.expire()
	setClock(p, st)
	x := &Sealed{s: s, writes: s.table.Seal(s.spare), stores: s.registered()}
	s.spare = nil
	x.writes.Sort()
	if err := s.applyRows(op, p, x.writes.Bytes()+x.writes.Len()*(storePrefixLen+entryOverhead), x.fill); err != nil {
		s.table.Reset()
		st.expired = 0
		return err
	}
	s.table.Applied()
	if s.scans == 0 {
		s.spare = x.writes
	}
	return nil
}

func (s *TaskStore) putVersions(op string, st *store, records []RestoreRecord) error {
	for i := range records {
		r := &records[i]
		if err := st.versioned.v.Restore(r.Key, r.Value, r.Timestamp); err != nil {
			if err := st.versioned.rows.checked(op, err); s.usable() != nil {
				return err
			}
			return st.malformed(op, s.dir, records, i, err)
		}
	}
	return nil
}

func setClock(p *progress, st *store) {
	sp := p.stores[st.id]
	sp.clock = st.clock
	p.stores[st.id] = sp
}

// malformed is the error of a record that is not one of this kind of store.
func (st *store) malformed(op, dir string, records []RestoreRecord, i int, err error) error {
	return fmt.Errorf("%s store %q of %s: record %d of %d is not one of the changelog of a %v store (%s): key %.64x, timestamp %d: %w; "+
		"check what wrote to the topic, and Clear the store", op, st.spec.Name, dir, i+1, len(records), st.spec.Kind, st.spec.Changelog, records[i].Key, records[i].Timestamp, err)
}

var (
	_ segmented = (*kinds.Window)(nil)
	_ segmented = (*kinds.Session)(nil)
)
