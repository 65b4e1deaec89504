package processor

import (
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// TimestampedKeyValueHandle declares a key-value store that keeps a timestamp with each
// value, and opens it. Tables and aggregates use it.
type TimestampedKeyValueHandle[K, V any] struct{ declared[K, V] }

// TimestampedKeyValue declares a timestamped key-value store.
func TimestampedKeyValue[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{declare(statestore.KindTimestampedKeyValue, name, key, value)}
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h TimestampedKeyValueHandle[K, V]) InMemory() TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{h.inMemory()}
}

// Unlogged is [KeyValueHandle.Unlogged] for this kind.
func (h TimestampedKeyValueHandle[K, V]) Unlogged() TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h TimestampedKeyValueHandle[K, V]) KeptIn(open StoreOpener) TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h TimestampedKeyValueHandle[K, V]) SchemaVersion(version uint32) TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h TimestampedKeyValueHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h TimestampedKeyValueHandle[K, V]) In(ctx StoreContext) *TimestampedKeyValueStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.KeyValue, a access) *TimestampedKeyValueStore[K, V] {
		return &TimestampedKeyValueStore[K, V]{keyValues[K, V]{newCodec(h.declared, a), raw}}
	})
}

// TimestampedEntry is one entry of a timestamped store.
type TimestampedEntry[K, V any] struct {
	Key       K
	Value     V
	Timestamp time.Time
}

// TimestampedKeyValueStore is a typed key-value store whose values carry a timestamp. See
// [KeyValueStore] for when writes are seen, and for iterations.
type TimestampedKeyValueStore[K, V any] struct{ keyValues[K, V] }

// Get reads a key and the timestamp it was written with.
func (s *TimestampedKeyValueStore[K, V]) Get(key K) (value V, at time.Time, ok bool, err error) {
	value, ms, ok, err := s.get(&key)
	if ok {
		at = time.UnixMilli(ms)
	}
	return value, at, ok, err
}

// Put writes a key with a timestamp. A nil value deletes it.
func (s *TimestampedKeyValueStore[K, V]) Put(key K, value V, at time.Time) error {
	return s.put(&key, &value, at)
}

// PutAll writes entries, in their order. It stops at the first error.
func (s *TimestampedKeyValueStore[K, V]) PutAll(entries ...TimestampedEntry[K, V]) error {
	for i := range entries {
		e := &entries[i]
		if err := s.put(&e.Key, &e.Value, e.Timestamp); err != nil {
			return err
		}
	}
	return nil
}

// PutIfAbsent writes a key that has no value yet, and gives the value and timestamp it had.
func (s *TimestampedKeyValueStore[K, V]) PutIfAbsent(key K, value V, at time.Time) (had V, hadAt time.Time, ok bool, err error) {
	if had, hadAt, ok, err = s.Get(key); ok || err != nil {
		return had, hadAt, ok, err
	}
	return had, hadAt, false, s.Put(key, value, at)
}

// Delete removes a key; at becomes the timestamp of the tombstone in the changelog.
func (s *TimestampedKeyValueStore[K, V]) Delete(key K, at time.Time) error {
	return s.delete(&key, at)
}

// All gives every entry.
func (s *TimestampedKeyValueStore[K, V]) All() iter.Seq2[TimestampedEntry[K, V], error] {
	return s.scan(func(kv *statestore.KeyValue) rawEntries { return kv.All() })
}

// ReverseAll gives every entry, the last key first.
func (s *TimestampedKeyValueStore[K, V]) ReverseAll() iter.Seq2[TimestampedEntry[K, V], error] {
	return s.scan(func(kv *statestore.KeyValue) rawEntries { return kv.ReverseAll() })
}

// Range gives the entries with from <= key < to. A nil key, of a type that has nil, is an open
// end.
func (s *TimestampedKeyValueStore[K, V]) Range(from, to K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(&from, &to, (*statestore.KeyValue).Range)
}

// ReverseRange gives the entries with from <= key < to, the last key first.
func (s *TimestampedKeyValueStore[K, V]) ReverseRange(from, to K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(&from, &to, (*statestore.KeyValue).ReverseRange)
}

// RangeFrom gives the entries with from <= key.
func (s *TimestampedKeyValueStore[K, V]) RangeFrom(from K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(&from, nil, (*statestore.KeyValue).Range)
}

// ReverseRangeTo gives the entries with key < to, the last key first.
func (s *TimestampedKeyValueStore[K, V]) ReverseRangeTo(to K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(nil, &to, (*statestore.KeyValue).ReverseRange)
}

// PrefixScan gives the entries whose keys, as bytes, begin with prefix. The function
// [PrefixScan] takes one that is not encoded yet.
func (s *TimestampedKeyValueStore[K, V]) PrefixScan(prefix []byte) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.scan(func(kv *statestore.KeyValue) rawEntries { return kv.PrefixScan(prefix) })
}
