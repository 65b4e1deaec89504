package processor

import (
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// TimestampedKeyValueHandle declares a key-value store that keeps a timestamp with each
// value, and opens it. Tables and aggregates use it.
type TimestampedKeyValueHandle[K, V any] struct {
	def Definition
	key serde.Serde[K]
	val serde.Serde[V]
}

// TimestampedKeyValue declares a timestamped key-value store.
func TimestampedKeyValue[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) TimestampedKeyValueHandle[K, V] {
	return TimestampedKeyValueHandle[K, V]{Definition{Name: name, Kind: statestore.KindTimestampedKeyValue, KeySerde: key.Name(), ValueSerde: value.Name()}, key, value}
}

// Definition gives the declaration.
func (h TimestampedKeyValueHandle[K, V]) Definition() Definition { return h.def }

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h TimestampedKeyValueHandle[K, V]) In(ctx StoreContext) *TimestampedKeyValueStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.KeyValue, c *recordClock, err error) *TimestampedKeyValueStore[K, V] {
		return &TimestampedKeyValueStore[K, V]{codec[K, V]{raw: raw, clock: c, key: h.key, val: h.val, err: err, name: h.def.Name}}
	})
}

// TimestampedEntry is one entry of a timestamped store.
type TimestampedEntry[K, V any] struct {
	Key       K
	Value     V
	Timestamp time.Time
}

// TimestampedKeyValueStore is a typed key-value store whose values carry a timestamp. See
// [KeyValueStore] for when writes are seen.
type TimestampedKeyValueStore[K, V any] struct{ codec[K, V] }

// Get reads a key and the timestamp it was written with.
func (s *TimestampedKeyValueStore[K, V]) Get(key K) (value V, at time.Time, ok bool, err error) {
	value, ms, ok, err := s.get(key)
	if ok {
		at = time.UnixMilli(ms)
	}
	return value, at, ok, err
}

// Put writes a key with a timestamp. A nil value deletes it.
func (s *TimestampedKeyValueStore[K, V]) Put(key K, value V, at time.Time) error {
	return s.put(key, value, at)
}

// Delete removes a key; at becomes the timestamp of the tombstone in the changelog.
func (s *TimestampedKeyValueStore[K, V]) Delete(key K, at time.Time) error {
	return s.delete(key, at)
}

// All gives every entry, in the order of the keys' bytes, as the store was when the
// iteration began. An error ends it.
func (s *TimestampedKeyValueStore[K, V]) All() iter.Seq2[TimestampedEntry[K, V], error] {
	return s.scan(nil, nil)
}

// Range gives the entries with from <= key < to, in the order of the keys' bytes.
func (s *TimestampedKeyValueStore[K, V]) Range(from, to K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.scan(&from, &to)
}
