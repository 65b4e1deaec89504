package statestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// Commit writes a sealed interval: its changes, the task's progress and the stores'
// changelog offsets in one atomic batch. It does not wait for the disk (see
// [Options.SyncInterval] and [TaskStore.Sync]): a crash leaves the result of a prefix of
// the commits, never a part of one. A store that is not in changelogOffsets keeps its
// offset. Every registered store is complete at the interval's commit id afterwards, but for those
// of [Progress].Replaying.
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
	next.committed = time.Now().UnixMilli()
	for i, st := range x.stores {
		sp := x.progress.completeAt(st, next.stores[st.id])
		sp.clock = x.clocks[i]
		next.stores[st.id] = sp
	}
	x.writes.Sort()
	size := x.writes.Bytes() + x.writes.Len()*(storePrefixLen+entryOverhead)
	if err := s.applyRows("commit", next, size, x.fill); err != nil {
		return err
	}
	x.committed.Store(true)
	return nil
}

// entryOverhead is what a batch needs for an entry beside key and value: kind, two lengths,
// a timestamp.
const entryOverhead = 1 + 2*3 + 8

// fill puts the deleted ranges, then the changes into the batch, in key order: sorted ones
// go into the memtable faster.
func (x *Sealed) fill(b engine.Batch, rows engine.Engine) error {
	for _, r := range x.writes.Ranges() {
		if st := x.stores[r.Store]; st.rows == rows {
			b.DeleteRange(st.bounds(r.From, r.To))
		}
	}
	for i := range x.writes.Len() {
		w := x.writes.At(i)
		st := x.stores[w.Store]
		switch {
		case st.rows != rows || st.onlyLogged(w.Key):
		case w.Value == nil:
			engine.Delete(b, st.prefix[:], w.Key)
		case st.timestamped():
			engine.Set(b, st.prefix[:], w.Key, nil, w.Stamped)
		default:
			engine.Set(b, st.prefix[:], w.Key, nil, w.Value)
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

// apply writes metadata: applyRows of a batch that has no row of any store.
func (s *TaskStore) apply(op string, next *progress, size int, fill func(engine.Batch) error) error {
	return s.applyRows(op, next, size, func(b engine.Batch, rows engine.Engine) error {
		if rows != s.db {
			return nil
		}
		return fill(b)
	})
}

// applyRows writes one batch: the commit record with next, and what fill puts into it. It is
// the only way data gets into the database. fill is called for each engine of the task and
// puts in what that one keeps; size is about what it puts, in bytes. s.write is held.
//
// The database comes first: it alone says which commit the task is at, and a store beside
// it that is found behind is restored from its changelog.
func (s *TaskStore) applyRows(op string, next *progress, size int, fill func(engine.Batch, engine.Engine) error) error {
	next.seq = s.committed.Load().seq + 1
	record, err := encodeCommit(s.recorded(next))
	if err != nil {
		return fmt.Errorf("%s to %s: encode commit record: %w", op, s.dir, err)
	}
	sync := s.o.SyncEveryCommit || s.o.Engine == Memory // which has nothing to wait for
	err = s.db.Apply(op, size+len(record)+64, sync, func(b engine.Batch) error {
		engine.Set(b, nil, keyCommit, nil, record)
		return fill(b, s.db)
	})
	if err != nil {
		return err
	}
	if err := s.applyBeside(op, next, size, fill); err != nil {
		return err
	}
	s.committed.Store(next)
	if sync {
		s.durable.Store(next)
	} else {
		s.sync.arm()
	}
	return nil
}
