package statestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Commit writes a sealed interval: its changes, the task's progress and the stores'
// changelog offsets in one atomic batch. It does not wait for the disk (see
// [Options.SyncInterval] and [TaskStore.Sync]): a crash leaves the result of a prefix of
// the commits, never a part of one. A store that is not in changelogOffsets keeps its
// offset. Every registered store is complete at the interval's commit id afterwards.
//
// An error that wraps [ErrFailed] ends the task store; after any other nothing was
// written, and the commit may be repeated.
func (s *TaskStore) Commit(x *Sealed, changelogOffsets map[string]Offset) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	switch {
	case x == nil || x.s != s:
		return fmt.Errorf("commit to %s: the sealed interval is of another task store", s.dir)
	case x.dropped.Load():
		return fmt.Errorf("commit to %s: the sealed interval was dropped", s.dir)
	case x.committed.Load():
		return fmt.Errorf("commit to %s: the sealed interval was committed already", s.dir)
	}
	next, err := s.nextProgress(changelogOffsets)
	if err != nil {
		return fmt.Errorf("commit to %s: %w", s.dir, err)
	}
	next.advance(x.progress)
	for id, sp := range next.stores {
		sp.complete = true
		next.stores[id] = sp
	}
	x.writes.Sort()
	size := x.writes.Bytes() + x.writes.Len()*(storePrefixLen+entryOverhead)
	if err := s.apply("commit", next, size, x.fill); err != nil {
		return err
	}
	x.committed.Store(true)
	return nil
}

// entryOverhead is what a batch needs for an entry beside key and value: kind, two lengths,
// a timestamp.
const entryOverhead = 1 + 2*3 + 8

// fill puts the changes into the batch, in key order: sorted ones go into the memtable
// faster.
func (x *Sealed) fill(b *pebble.Batch) error {
	for i := range x.writes.Len() {
		w := x.writes.At(i)
		st := x.stores[w.Store]
		if w.Value == nil {
			op := b.DeleteDeferred(storePrefixLen + len(w.Key))
			copy(op.Key[copy(op.Key, st.prefix[:]):], w.Key)
			if err := op.Finish(); err != nil {
				return err
			}
			continue
		}
		stored := w.Value
		if st.timestamped() {
			stored = w.Stamped
		}
		op := b.SetDeferred(storePrefixLen+len(w.Key), len(stored))
		copy(op.Key[copy(op.Key, st.prefix[:]):], w.Key)
		copy(op.Value, stored)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// nextProgress gives a copy of the committed progress with only the registered stores,
// and the offsets put in. s.write is held.
func (s *TaskStore) nextProgress(offsets map[string]Offset) (*progress, error) {
	last := s.committed.Load()
	next := *last
	next.stores = make(map[uint32]storeProgress, len(s.registered()))
	known := 0
	var errs []error
	for _, st := range s.registered() {
		sp := last.stores[st.id]
		if o, ok := offsets[st.spec.Name]; ok {
			known++
			sp.offset = o
			if err := o.valid(); err != nil {
				errs = append(errs, fmt.Errorf("store %q: %w", st.spec.Name, err))
			}
		}
		next.stores[st.id] = sp
	}
	if known < len(offsets) {
		for name := range offsets {
			if _, err := s.find(name); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return &next, errors.Join(errs...)
}

// advance puts a commit's progress in.
func (p *progress) advance(by Progress) {
	if !by.ID.IsZero() {
		p.id = by.ID
	}
	p.streamTime = max(p.streamTime, by.StreamTime)
	p.positions = mergePositions(p.positions, by.Positions)
}

// apply writes one batch: the commit record with next, and what fill puts into it. It is
// the only way data gets into the database. size is about what fill puts, in bytes.
// s.write is held.
func (s *TaskStore) apply(op string, next *progress, size int, fill func(*pebble.Batch) error) error {
	next.seq = s.committed.Load().seq + 1
	record, err := encodeCommit(next)
	if err != nil {
		return fmt.Errorf("%s to %s: encode commit record: %w", op, s.dir, err)
	}
	wo := pebble.NoSync
	if s.o.SyncEveryCommit {
		wo = pebble.Sync
	}
	err = s.db.Write(op, func(db *pebble.DB) error {
		b := db.NewBatchWithSize(size + len(record) + 64)
		if err := errors.Join(b.Set(keyCommit, record, nil), fill(b)); err != nil {
			return errors.Join(err, b.Close())
		}
		if err := b.Commit(wo); err != nil {
			return err
		}
		return b.Close()
	})
	if err != nil {
		return err
	}
	s.committed.Store(next)
	if wo.Sync {
		s.durable.Store(next)
	} else {
		s.sync.arm()
	}
	return nil
}
