package statestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// prefetchAtLeast is from how many keys on one ordered pass is cheaper than Gets.
const prefetchAtLeast = 32

// unknownKey is a key to prefetch, with its first bytes for sorting.
type unknownKey struct {
	prefix uint64
	key    []byte
}

// Prefetch brings what the cache does not know of the keys into it, in one pass through the
// database in key order: for a state larger than the cache, a poll's keys read this way
// cost a third of Gets one by one. It is a hint: it may do nothing.
func (kv *KeyValue) Prefetch(keys [][]byte) error {
	s := kv.s
	if err := s.usable(); err != nil {
		return err
	}
	if !kv.CanPrefetch() {
		return nil
	}
	unknown := s.unknown[:0]
	for _, k := range keys {
		if !s.table.Knows(kv.st.number, k) {
			unknown = append(unknown, unknownKey{sortPrefix(k), k})
		}
	}
	s.unknown = unknown
	defer clear(unknown) // the keys are the caller's
	if len(unknown) < prefetchAtLeast {
		return nil
	}
	slices.SortFunc(unknown, func(a, b unknownKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(a.key, b.key)
	})
	lower, upper := storeBounds(kv.st.id)
	it, err := kv.st.rows.NewIter("prefetch", lower, upper)
	if err != nil {
		return err
	}
	if err := kv.load(it, unknown); err != nil {
		_ = it.Close()
		return err
	}
	return it.Close()
}

// CanPrefetch tells whether Prefetch may do anything: not for a store that is in the cache as a
// whole, nor for one in memory, nor for a user's, which can only walk from row to row.
func (kv *KeyValue) CanPrefetch() bool {
	return kv.st.rows == kv.s.db && kv.s.o.Engine == Pebble && !kv.s.table.Complete(kv.st.number)
}

// load looks up sorted keys, of which there may be equal ones.
func (kv *KeyValue) load(it engine.Iter, sorted []unknownKey) error {
	s := kv.s
	flips := s.table.Flips()
	for i, u := range sorted {
		if i > 0 && bytes.Equal(u.key, sorted[i-1].key) {
			continue
		}
		s.keyBuf = append(append(s.keyBuf[:0], kv.st.prefix[:]...), u.key...)
		var value []byte
		var timestamp int64
		if it.SeekGE(s.keyBuf) && bytes.Equal(it.Key(), s.keyBuf) {
			var err error
			if value, timestamp, err = kv.st.split(it.Value()); err != nil {
				return kv.st.rows.Fail("prefetch", err)
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
		// After a second flip the first of them would be gone before they are asked for.
		if !s.table.Load(kv.st.number, u.key, value, timestamp) || s.table.Flips() > flips+1 {
			return nil // no room
		}
	}
	return nil
}

func sortPrefix(k []byte) uint64 {
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}
