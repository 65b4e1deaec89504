package pebbledb

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

var _ engine.Engine = (*DB)(nil)

// Get implements engine.Reader.
func (d *DB) Get(op string, key, buf []byte) ([]byte, bool, error) { return d.get(op, d.db, key, buf) }

func (d *DB) get(op string, r pebble.Reader, key, buf []byte) (value []byte, ok bool, err error) {
	if err := d.Err(); err != nil {
		return nil, false, err
	}
	panicked, err := guardRead(op, func() error {
		v, c, err := r.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		value, ok = append(buf[:0], v...), true
		return c.Close()
	})
	if err != nil {
		return nil, false, d.outcome(op, err, panicked)
	}
	return value, ok, nil
}

// NewIter implements engine.Reader.
func (d *DB) NewIter(op string, lower, upper []byte) (engine.Iter, error) {
	return d.newIter(op, d.db, lower, upper)
}

func (d *DB) newIter(op string, r pebble.Reader, lower, upper []byte) (engine.Iter, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	it := &iterator{d: d, op: op}
	panicked, err := guardRead(op, func() (err error) {
		it.it, err = r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		return err
	})
	if err != nil {
		return nil, d.outcome(op, err, panicked)
	}
	return it, nil
}

// Snapshot implements engine.Engine.
func (d *DB) Snapshot(op string) (engine.Snapshot, error) {
	s := &snapshot{d: d, op: op}
	// Making one takes the database's lock, so it may have to be left behind.
	made := make(chan *pebble.Snapshot, 1)
	if err := d.Write(op, func(db *pebble.DB) error { made <- db.NewSnapshot(); return nil }); err != nil {
		return nil, err
	}
	s.s = <-made
	return s, nil
}

type snapshot struct {
	d      *DB
	op     string
	s      *pebble.Snapshot
	closed bool
}

func (s *snapshot) Get(op string, key, buf []byte) ([]byte, bool, error) {
	return s.d.get(op, s.s, key, buf)
}

func (s *snapshot) NewIter(op string, lower, upper []byte) (engine.Iter, error) {
	return s.d.newIter(op, s.s, lower, upper)
}

// Close also takes the database's lock.
func (s *snapshot) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if level, _ := s.d.latch.state(); level == fatal {
		return s.d.Err()
	}
	_, err := s.d.await(s.op, s.s.Close)
	if f := s.d.Err(); f != nil {
		return f
	}
	return err
}

// Apply implements engine.Engine.
func (d *DB) Apply(op string, size int, sync bool, fill func(engine.Batch) error) error {
	wo := pebble.NoSync
	if sync {
		wo = pebble.Sync
	}
	return d.Write(op, func(db *pebble.DB) error {
		b := batch{b: db.NewBatchWithSize(size)}
		if err := errors.Join(fill(&b), b.err); err != nil {
			return errors.Join(err, b.b.Close())
		}
		d.table.deleted.add(b.ranges)
		d.wrote(b.b)
		if err := b.b.Commit(wo); err != nil {
			return err
		}
		return errors.Join(b.b.Close(), d.relieve(db))
	})
}

// batch leaves out Pebble's Finish, which does something only for an indexed batch.
type batch struct {
	b      *pebble.Batch
	ranges []keyRange // that are deleted
	err    error
}

func (b *batch) Set(keyLen, valueLen int) (key, value []byte) {
	op := b.b.SetDeferred(keyLen, valueLen)
	return op.Key, op.Value
}

func (b *batch) Delete(keyLen int) (key []byte) { return b.b.DeleteDeferred(keyLen).Key }

func (b *batch) DeleteRange(lower, upper []byte) {
	b.ranges = append(b.ranges, keyRange{string(lower), string(upper)})
	b.err = errors.Join(b.err, b.b.DeleteRange(lower, upper, nil))
}

// Sync implements engine.Engine: an empty log record that is synced takes with it all
// that were written before.
func (d *DB) Sync() error {
	return d.Write("sync", func(db *pebble.DB) error { return errors.Join(db.LogData(nil, pebble.Sync), d.relieve(db)) })
}

// Flush implements engine.Engine.
func (d *DB) Flush() error { return d.Write("flush", func(db *pebble.DB) error { return db.Flush() }) }

// DiskUsage implements engine.Engine.
func (d *DB) DiskUsage(lower, upper []byte) (n uint64, err error) {
	err = d.Read("estimate size", func(db *pebble.DB) (err error) {
		n, err = db.EstimateDiskUsage(lower, upper)
		return err
	})
	return n, err
}

// Fail implements engine.Engine.
func (d *DB) Fail(op string, err error) error { return d.outcome(op, err, false) }
