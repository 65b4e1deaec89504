package processor

import (
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// KeyValueHandle declares a key-value store and opens it.
type KeyValueHandle[K, V any] struct{ declared[K, V] }

// KeyValue declares a key-value store.
func KeyValue[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{declare(statestore.KindKeyValue, name, key, value)}
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h KeyValueHandle[K, V]) InMemory() KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{h.inMemory()}
}

// Unlogged gives the store no changelog: it is on the disk of this host only. What a crash took from its end,
// or all of it when the disk was lost, is made anew from the inputs, for as long as they reach back: the records
// are processed again, up to where the group is, with no effect but on such stores. It is for
// state that is a function of the records, and for at-least-once only.
func (h KeyValueHandle[K, V]) Unlogged() KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h KeyValueHandle[K, V]) KeptIn(open StoreOpener) KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h KeyValueHandle[K, V]) SchemaVersion(version uint32) KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h KeyValueHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h KeyValueHandle[K, V]) In(ctx StoreContext) *KeyValueStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.KeyValue, a access) *KeyValueStore[K, V] {
		return &KeyValueStore[K, V]{keyValues[K, V]{newCodec(h.declared, a), raw}}
	})
}

// Entry is one entry of a store.
type Entry[K, V any] struct {
	Key   K
	Value V
}

// KeyValueStore is a typed key-value store. Writes are seen at once by reads of the same
// task, and by everyone else when the task commits; they are never half committed.
//
// What gives many entries gives them in the order of the keys' bytes, as the store was when
// the iteration began; the loop may write. An error ends it, as the second value of the last turn.
type KeyValueStore[K, V any] struct{ keyValues[K, V] }

// Get reads a key.
func (s *KeyValueStore[K, V]) Get(key K) (value V, ok bool, err error) {
	value, _, ok, err = s.get(&key)
	return value, ok, err
}

// Put writes a key. A nil value deletes it.
func (s *KeyValueStore[K, V]) Put(key K, value V) error { return s.put(&key, &value, s.now()) }

// PutAll writes entries, in their order. It stops at the first error.
func (s *KeyValueStore[K, V]) PutAll(entries ...Entry[K, V]) error {
	for i := range entries {
		if err := s.put(&entries[i].Key, &entries[i].Value, s.now()); err != nil {
			return err
		}
	}
	return nil
}

// PutIfAbsent writes a key that has no value yet, and gives the value it had.
func (s *KeyValueStore[K, V]) PutIfAbsent(key K, value V) (had V, ok bool, err error) {
	if had, ok, err = s.Get(key); ok || err != nil {
		return had, ok, err
	}
	return had, false, s.Put(key, value)
}

// Delete removes a key, and gives the value it had.
func (s *KeyValueStore[K, V]) Delete(key K) (had V, ok bool, err error) {
	if had, ok, err = s.Get(key); !ok || err != nil {
		return had, ok, err
	}
	return had, true, s.delete(&key, s.now())
}

// All gives every entry.
func (s *KeyValueStore[K, V]) All() iter.Seq2[Entry[K, V], error] {
	return s.entries(func(kv *statestore.KeyValue) rawEntries { return kv.All() })
}

// ReverseAll gives every entry, the last key first.
func (s *KeyValueStore[K, V]) ReverseAll() iter.Seq2[Entry[K, V], error] {
	return s.entries(func(kv *statestore.KeyValue) rawEntries { return kv.ReverseAll() })
}

// Range gives the entries with from <= key < to. A nil key, of a type that has nil, is an open
// end.
func (s *KeyValueStore[K, V]) Range(from, to K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(&from, &to, (*statestore.KeyValue).Range))
}

// ReverseRange gives the entries with from <= key < to, the last key first.
func (s *KeyValueStore[K, V]) ReverseRange(from, to K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(&from, &to, (*statestore.KeyValue).ReverseRange))
}

// RangeFrom gives the entries with from <= key.
func (s *KeyValueStore[K, V]) RangeFrom(from K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(&from, nil, (*statestore.KeyValue).Range))
}

// ReverseRangeTo gives the entries with key < to, the last key first.
func (s *KeyValueStore[K, V]) ReverseRangeTo(to K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(nil, &to, (*statestore.KeyValue).ReverseRange))
}

// PrefixScan gives the entries whose keys, as bytes, begin with prefix. The function
// [PrefixScan] takes one that is not encoded yet.
func (s *KeyValueStore[K, V]) PrefixScan(prefix []byte) iter.Seq2[Entry[K, V], error] {
	return s.entries(func(kv *statestore.KeyValue) rawEntries { return kv.PrefixScan(prefix) })
}

func (s *KeyValueStore[K, V]) entries(scan func(*statestore.KeyValue) rawEntries) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.scan(scan))
}

// PrefixScan gives the entries of a key-value store whose keys, as bytes, begin with the
// encoding of prefix: with a store of string keys, PrefixScan(s, "user:", serde.String).
// It makes sense for encodings that keep the parts of a key in order.
func PrefixScan[P, E any](store interface {
	PrefixScan(prefix []byte) iter.Seq2[E, error]
}, prefix P, s serde.Serde[P]) iter.Seq2[E, error] {
	b, err := s.Append(nil, prefix)
	if err == nil {
		return store.PrefixScan(b)
	}
	return func(yield func(E, error) bool) {
		var none E
		yield(none, &serde.Error{Serde: s.Name(), Partition: -1, Offset: -1, Part: serde.PartKey, Err: err})
	}
}

// keyValues is what plain and timestamped key-value stores share.
type keyValues[K, V any] struct {
	codec[K, V]
	raw *statestore.KeyValue
}

// ApproximateCount gives the number of entries: exact when there are few, or when as many were written
// lately as there are, else estimated. It reads what it counts, so it is not for every record.
func (s *keyValues[K, V]) ApproximateCount() (int64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	return s.raw.ApproximateCount()
}

func (s *keyValues[K, V]) get(key *K) (value V, ms int64, ok bool, err error) {
	k, err := s.keyBytes(key)
	if err != nil {
		return value, 0, false, err
	}
	b, ms, ok, err := s.raw.Get(k)
	if !ok || err != nil {
		return value, 0, false, err
	}
	value, err = s.decodeValue(b)
	return value, ms, err == nil, err
}

func (s *keyValues[K, V]) put(key *K, value *V, at time.Time) error {
	if serde.IsNil(value) {
		return s.delete(key, at)
	}
	k, err := s.keyBytes(key)
	if err != nil {
		return err
	}
	v, err := s.valueBytes(value)
	if err != nil {
		return err
	}
	ms, err := s.time(at)
	if err != nil {
		return err
	}
	return s.raw.Put(k, v, ms)
}

func (s *keyValues[K, V]) delete(key *K, at time.Time) error {
	k, err := s.keyBytes(key)
	if err != nil {
		return err
	}
	ms, err := s.time(at)
	if err != nil {
		return err
	}
	return s.raw.Delete(k, ms)
}

type rawEntries = iter.Seq2[statestore.Entry, error]

func (s *keyValues[K, V]) between(from, to *K, scan func(kv *statestore.KeyValue, from, to []byte) rawEntries) iter.Seq2[TimestampedEntry[K, V], error] {
	return func(yield func(TimestampedEntry[K, V], error) bool) {
		lo, hi, err := s.bounds(from, to)
		if err != nil {
			yield(TimestampedEntry[K, V]{}, err)
			return
		}
		s.scan(func(kv *statestore.KeyValue) rawEntries { return scan(kv, lo, hi) })(yield)
	}
}

func (s *keyValues[K, V]) scan(scan func(*statestore.KeyValue) rawEntries) iter.Seq2[TimestampedEntry[K, V], error] {
	return func(yield func(TimestampedEntry[K, V], error) bool) {
		if err := s.usable(); err != nil {
			yield(TimestampedEntry[K, V]{}, err)
			return
		}
		for e, err := range scan(s.raw) {
			t := TimestampedEntry[K, V]{Timestamp: time.UnixMilli(e.Timestamp)}
			if err == nil {
				t.Key, t.Value, err = s.decode(e.Key, e.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
			if err := s.usable(); err != nil {
				yield(TimestampedEntry[K, V]{}, err)
				return
			}
		}
	}
}

func withoutTimes[K, V any](entries iter.Seq2[TimestampedEntry[K, V], error]) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		for e, err := range entries {
			if !yield(Entry[K, V]{e.Key, e.Value}, err) {
				return
			}
		}
	}
}
