package statestore

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// KeyValue is a key-value store of a task, plain or timestamped. It belongs to the task
// store's owner. Keys are any bytes, the empty key included; nil and empty keys are the
// same key.
type KeyValue struct {
	s  *TaskStore
	st *store
}

// KeyValue gives a registered store.
func (s *TaskStore) KeyValue(name string) (*KeyValue, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if kv, ok := s.handles[name]; ok {
		return kv, nil
	}
	st, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return nil, st.isNot("key-value")
}

// Name is the store's name.
func (kv *KeyValue) Name() string { return kv.st.spec.Name }

// Timestamped tells whether the store keeps timestamps.
func (kv *KeyValue) Timestamped() bool { return kv.st.timestamped() }

// Get gives the value of key and, from a timestamped store, its timestamp (else 0). It sees all
// writes, committed or not. The value is valid, and must not be changed, until the next
// call on any store of the task.
func (kv *KeyValue) Get(key []byte) (value []byte, timestamp int64, ok bool, err error) {
	s := kv.s
	if err := s.usable(); err != nil {
		return nil, 0, false, err
	}
	value, timestamp, a := s.table.Get(kv.st.number, key)
	switch a {
	case table.Present:
		if !kv.st.timestamped() {
			timestamp = 0 // the overlay has it for the changelog; the database does not
		}
		return value, timestamp, true, nil
	case table.Absent:
		return nil, 0, false, nil
	}
	return kv.getFromDatabase(key)
}

func (kv *KeyValue) getFromDatabase(key []byte) (value []byte, timestamp int64, ok bool, err error) {
	s := kv.s
	s.Trim()
	s.keyBuf = append(append(s.keyBuf[:0], kv.st.prefix[:]...), key...)
	stored, ok, err := kv.st.rows.Get("get", s.keyBuf, s.valBuf)
	if err != nil {
		return nil, 0, false, err
	}
	if ok {
		s.valBuf = stored
		if value, timestamp, err = kv.st.split(stored); err != nil {
			return nil, 0, false, kv.st.rows.Fail("get", err)
		}
	}
	s.table.Fill(kv.st.number, key, value, timestamp)
	return value, timestamp, ok, nil
}

// split takes a database value apart. The value is not nil, which would mean deleted.
func (st *store) split(stored []byte) (value []byte, timestamp int64, err error) {
	if stored == nil {
		stored = []byte{}
	}
	if !st.timestamped() {
		return stored[:len(stored):len(stored)], 0, nil
	}
	if len(stored) < 8 {
		return nil, 0, fmt.Errorf("%w: store %q has a value of %d bytes, shorter than its timestamp", ErrCorrupt, st.spec.Name, len(stored))
	}
	return stored[8:len(stored):len(stored)], int64(binary.BigEndian.Uint64(stored)), nil
}

// Put writes a value; nil deletes, empty does not. Key and value are copied. The timestamp
// (milliseconds) is that of the record that causes the write: it goes into the changelog
// and, in a timestamped store, beside the value. The write is in the database after the
// next Seal and Commit.
func (kv *KeyValue) Put(key, value []byte, timestamp int64) error {
	if err := kv.s.usable(); err != nil || kv.st.muted {
		return err
	}
	if err := kv.s.table.Put(kv.st.number, key, value, timestamp); err != nil {
		return fmt.Errorf("put into store %q of %s (key of %d bytes, value of %d): %w", kv.st.spec.Name, kv.s.dir, len(key), len(value), err)
	}
	return nil
}

// Delete removes a key, also one that is not there. See Put for the timestamp.
func (kv *KeyValue) Delete(key []byte, timestamp int64) error {
	return kv.Put(key, nil, timestamp)
}

// DirtyBytes is about what the uncommitted, unsealed writes take.
func (s *TaskStore) DirtyBytes() int { return s.table.DirtyBytes() }

// NeedsCommit tells whether there are so many uncommitted writes that the task should
// commit now. Nothing enforces it below 1 GiB ([ErrOverlayFull]).
func (s *TaskStore) NeedsCommit() bool { return s.table.DirtyBytes() >= s.o.MaxDirtyBytes }

// CacheBytes is the memory that uncommitted writes and clean values take.
func (s *TaskStore) CacheBytes() int { return s.table.Bytes() }
