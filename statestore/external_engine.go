package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// externalRows makes a user's [StateStore] an engine. Above it keys have the store's
// prefix, the user does not see it.
type externalRows struct {
	s     *TaskStore
	st    *store
	store StateStore
	file  *checkpointFile // nil: the store manages its offsets itself
	at    StorePoint      // what the last Apply said

	mu     sync.Mutex // Apply, Sync and Close: one at a time
	closed bool
}

var errNoSnapshot = errors.New("a user's own store has no snapshots")

// call runs user code, and makes of a panic or error in it the failure of the task store.
func (x *externalRows) call(op string, fn func() error) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := x.guard(op, fn); err != nil {
		return x.s.db.Fail(op, err)
	}
	return nil
}

func (x *externalRows) guard(op string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store %q: %s panicked: %v", x.st.spec.Name, op, p)
		}
	}()
	if err = fn(); err != nil {
		err = fmt.Errorf("store %q: %w", x.st.spec.Name, err)
	}
	return err
}

// Err implements engine.Engine: one failure for the whole task store.
func (x *externalRows) Err() error { return x.s.db.Err() }

// Failed implements engine.Engine.
func (x *externalRows) Failed() <-chan struct{} { return x.s.db.Failed() }

// Fail implements engine.Engine.
func (x *externalRows) Fail(op string, err error) error {
	return x.s.db.Fail(op, fmt.Errorf("store %q: %w", x.st.spec.Name, err))
}

// Get implements engine.Reader.
func (x *externalRows) Get(op string, key, buf []byte) (value []byte, ok bool, err error) {
	err = x.call(op, func() error {
		v, found, err := x.store.Get(key[storePrefixLen:])
		value, ok = append(buf[:0], v...), found
		return err
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return value, true, nil
}

// NewIter implements engine.Reader.
func (x *externalRows) NewIter(op string, lower, upper []byte) (engine.Iter, error) {
	if err := x.Err(); err != nil {
		return nil, err
	}
	it := &externalIter{x: x, op: op, from: bytes.Clone(lower[storePrefixLen:])}
	if bytes.HasPrefix(upper, x.st.prefix[:]) { // else it is the end of the store
		it.to = bytes.Clone(upper[storePrefixLen:])
	}
	return it, nil
}

// Snapshot implements engine.Engine.
func (x *externalRows) Snapshot(string) (engine.Snapshot, error) { return nil, errNoSnapshot }

// Apply implements engine.Engine.
func (x *externalRows) Apply(op string, size int, _ bool, fill func(engine.Batch) error) error {
	return x.applyAt(op, x.s.committed.Load(), size, fill)
}

func (x *externalRows) applyAt(op string, next *progress, _ int, fill func(engine.Batch) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	sp := next.stores[x.st.id]
	at := StorePoint{Offset: sp.offset}
	if sp.complete {
		at.ID = next.id
	}
	return x.call(op, func() error {
		b := externalBatch{x: x}
		if err := errors.Join(fill(&b), b.err); err != nil {
			return err
		}
		if x.file == nil {
			return x.applyManaged(b.writes, at)
		}
		return x.applyWrapped(b.writes, at)
	})
}

func (x *externalRows) applyManaged(writes []Row, at StorePoint) error {
	if len(writes) == 0 && at == x.at {
		return nil
	}
	err := x.store.Apply(writes, at)
	if err == nil && x.s.o.SyncEveryCommit {
		err = x.store.Sync()
	}
	if err == nil {
		x.at = at
	}
	return err
}

// applyWrapped keeps the file behind the data at every moment: what it says to be there is
// there, and what is there beyond it is replayed.
func (x *externalRows) applyWrapped(writes []Row, at StorePoint) error {
	if len(writes) == 0 && at.Offset == x.at.Offset {
		return nil
	}
	if before, known := x.at.Offset.Next(); known {
		if next, ok := at.Offset.Next(); !ok || next < before {
			if err := x.file.write(Offset{}); err != nil {
				return err
			}
		}
	}
	if err := x.store.Apply(writes, at); err != nil {
		return err
	}
	if err := x.store.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := x.file.write(at.Offset); err != nil {
		return err
	}
	x.at = at
	return nil
}

// Sync implements engine.Engine. A wrapped store was synced by its last Apply.
func (x *externalRows) Sync() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file != nil || x.closed {
		return x.Err()
	}
	return x.call("sync", x.store.Sync)
}

// Flush implements engine.Engine.
func (x *externalRows) Flush() error { return x.Sync() }

// DiskUsage implements engine.Engine: nobody knows.
func (x *externalRows) DiskUsage(_, _ []byte) (uint64, error) { return 0, x.Err() }

// EstimateRows implements engine.Engine: nobody knows.
func (x *externalRows) EstimateRows(_, _ []byte) (settled, loose int64, err error) {
	return 0, engine.UnknownRows, x.Err()
}

// Close implements engine.Engine.
func (x *externalRows) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	return x.guard("close", x.store.Close)
}

// externalBatch makes of a batch what a user's store takes: a deletion of a range becomes
// one of each of its rows.
type externalBatch struct {
	x      *externalRows
	writes []Row
	err    error
}

func (b *externalBatch) Set(keyLen, valueLen int) (key, value []byte) {
	buf := make([]byte, keyLen+valueLen)
	key, value = buf[:keyLen:keyLen], buf[keyLen:]
	b.writes = append(b.writes, Row{key[storePrefixLen:], value})
	return key, value
}

func (b *externalBatch) Delete(keyLen int) (key []byte) {
	key = make([]byte, keyLen)
	b.writes = append(b.writes, Row{Key: key[storePrefixLen:]})
	return key
}

func (b *externalBatch) DeleteRange(lower, upper []byte) {
	from, to := lower[storePrefixLen:], []byte(nil)
	if bytes.HasPrefix(upper, b.x.st.prefix[:]) {
		to = upper[storePrefixLen:]
	}
	for _, w := range b.writes { // earlier ones of this batch
		if bytes.Compare(w.Key, from) >= 0 && (to == nil || bytes.Compare(w.Key, to) < 0) {
			b.writes = append(b.writes, Row{Key: w.Key})
		}
	}
	for row, err := range b.x.store.Range(from, to, false) {
		if err != nil {
			b.err = errors.Join(b.err, err)
			return
		}
		b.writes = append(b.writes, Row{Key: bytes.Clone(row.Key)})
	}
}

// externalIter walks over a user's store, in one direction: nobody turns round.
type externalIter struct {
	x        *externalRows
	op       string
	from, to []byte
	next     func() (Row, error, bool)
	stop     func()
	reverse  bool
	row      Row
	key      []byte
	on       bool
	err      error
}

func (it *externalIter) First() bool { return it.begin(it.from, false) }
func (it *externalIter) Last() bool  { return it.begin(it.from, true) }

// SeekGE goes on from where a walk stands, so that what it sees stays of one time.
func (it *externalIter) SeekGE(key []byte) bool {
	if !bytes.HasPrefix(key, it.x.st.prefix[:]) { // behind the store
		it.on = false
		return false
	}
	key = key[storePrefixLen:]
	if it.next == nil {
		return it.begin(maxBytes(it.from, bytes.Clone(key)), false)
	}
	for it.on && bytes.Compare(it.row.Key, key) < 0 {
		it.move(false)
	}
	return it.on
}

func (it *externalIter) Next() bool { return it.move(false) }
func (it *externalIter) Prev() bool { return it.move(true) }

func (it *externalIter) begin(from []byte, reverse bool) bool {
	it.end()
	if it.err != nil {
		return false
	}
	it.reverse, it.on = reverse, true
	it.err = it.x.call(it.op, func() error {
		it.next, it.stop = iter.Pull2(it.x.store.Range(from, it.to, reverse))
		return nil
	})
	return it.move(reverse)
}

func (it *externalIter) move(reverse bool) bool {
	if !it.on || it.err != nil {
		it.on = false
		return false
	}
	it.err = it.x.call(it.op, func() error {
		if reverse != it.reverse {
			return errors.New("a walk over a user's own store cannot turn round")
		}
		row, err, ok := it.next()
		it.row, it.on = row, ok
		return err
	})
	if it.err != nil {
		it.on = false
	}
	if it.on {
		it.key = append(append(it.key[:0], it.x.st.prefix[:]...), it.row.Key...)
	}
	return it.on
}

func (it *externalIter) Key() []byte   { return it.key }
func (it *externalIter) Value() []byte { return it.row.Value }
func (it *externalIter) Err() error    { return it.err }

func (it *externalIter) end() {
	if it.stop != nil {
		if err := it.x.guard(it.op, func() error { it.stop(); return nil }); it.err == nil && err != nil {
			it.err = it.x.s.db.Fail(it.op, err)
		}
	}
	it.next, it.stop, it.on = nil, nil, false
}

func (it *externalIter) Close() error {
	it.end()
	return it.err
}

func maxBytes(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}
