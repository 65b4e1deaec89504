package memdb

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidwall/btree"
)

var _ engine.Engine = (*DB)(nil)

// DB is an engine in memory.
type DB struct {
	rows   atomic.Pointer[btree.BTreeG[row]]
	wrap   func(error) error
	failed chan struct{}

	write sync.Mutex // batches, and the failure
	err   atomic.Pointer[error]
}

type row struct{ key, value []byte }

func less(a, b row) bool { return bytes.Compare(a.key, b.key) < 0 }

// New gives an empty engine. wrapFailure makes of the first failure the error that every
// later call returns.
func New(wrapFailure func(error) error) *DB {
	d := &DB{wrap: wrapFailure, failed: make(chan struct{})}
	d.rows.Store(emptyTree())
	return d
}

func emptyTree() *btree.BTreeG[row] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Err implements engine.Engine.
func (d *DB) Err() error {
	if e := d.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Failed implements engine.Engine.
func (d *DB) Failed() <-chan struct{} { return d.failed }

// Fail implements engine.Engine.
func (d *DB) Fail(op string, err error) error {
	if err == nil {
		return nil
	}
	first := d.wrap(fmt.Errorf("%s: %w", op, err))
	if d.err.CompareAndSwap(nil, &first) {
		close(d.failed)
	}
	return d.Err()
}

// Get implements engine.Reader.
func (d *DB) Get(_ string, key, buf []byte) ([]byte, bool, error) {
	if err := d.Err(); err != nil {
		return nil, false, err
	}
	value, ok := get(d.rows.Load(), key, buf)
	return value, ok, nil
}

func get(rows *btree.BTreeG[row], key, buf []byte) ([]byte, bool) {
	r, ok := rows.Get(row{key: key})
	if !ok {
		return nil, false
	}
	return append(buf[:0], r.value...), true
}

// NewIter implements engine.Reader.
func (d *DB) NewIter(_ string, lower, upper []byte) (engine.Iter, error) {
	return newIter(d, d.rows.Load(), lower, upper)
}

// Snapshot implements engine.Engine.
func (d *DB) Snapshot(string) (engine.Snapshot, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &snapshot{d, d.rows.Load()}, nil
}

type snapshot struct {
	d    *DB
	rows *btree.BTreeG[row]
}

func (s *snapshot) Get(_ string, key, buf []byte) ([]byte, bool, error) {
	if err := s.d.Err(); err != nil {
		return nil, false, err
	}
	value, ok := get(s.rows, key, buf)
	return value, ok, nil
}

func (s *snapshot) NewIter(_ string, lower, upper []byte) (engine.Iter, error) {
	return newIter(s.d, s.rows, lower, upper)
}

func (s *snapshot) Close() error { return s.d.Err() }

// Sync implements engine.Engine: there is nothing that it could make safer.
func (d *DB) Sync() error { return d.Err() }

// Flush implements engine.Engine.
func (d *DB) Flush() error { return d.Err() }

// DiskUsage implements engine.Engine.
func (d *DB) DiskUsage(_, _ []byte) (uint64, error) { return 0, d.Err() }

// EstimateRows implements engine.Engine: counting is cheap.
func (d *DB) EstimateRows(_, _ []byte) (settled, loose int64, err error) {
	return 0, engine.UnknownRows, d.Err()
}

// Close implements engine.Engine: the rows are gone. Iterators that are open stay usable.
func (d *DB) Close() error {
	d.write.Lock()
	defer d.write.Unlock()
	d.rows.Store(emptyTree())
	return nil
}
