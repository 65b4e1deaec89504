package processor

import (
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// TimestampedWindowHandle declares a window store that keeps a timestamp with each value, and
// opens it. Windowed aggregates use it.
type TimestampedWindowHandle[K, V any] struct{ declared[K, V] }

// TimestampedWindow declares a timestamped window store. See [Window] for size and retention.
func TimestampedWindow[K, V any](name string, key serde.Serde[K], value serde.Serde[V], size, retention time.Duration) TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{declareWindow(statestore.KindTimestampedWindow, name, key, value, size, retention)}
}

// RetainDuplicates keeps every value put for a key and start, instead of the last one: the store
// is a log of values by time. Nothing can be deleted from it.
func (h TimestampedWindowHandle[K, V]) RetainDuplicates() TimestampedWindowHandle[K, V] {
	h.def.RetainDuplicates = true
	return h
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h TimestampedWindowHandle[K, V]) InMemory() TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{h.inMemory()}
}

// Unlogged is [KeyValueHandle.Unlogged] for this kind.
func (h TimestampedWindowHandle[K, V]) Unlogged() TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h TimestampedWindowHandle[K, V]) KeptIn(open StoreOpener) TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h TimestampedWindowHandle[K, V]) SchemaVersion(version uint32) TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h TimestampedWindowHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) TimestampedWindowHandle[K, V] {
	return TimestampedWindowHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h TimestampedWindowHandle[K, V]) In(ctx StoreContext) *TimestampedWindowStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.Window, a access) *TimestampedWindowStore[K, V] {
		return &TimestampedWindowStore[K, V]{windows[K, V]{newCodec(h.declared, a), raw, h.def.WindowSize}}
	})
}

// TimestampedWindowStore is a typed window store whose values carry a timestamp. See
// [WindowStore] for fetches, and [KeyValueStore] for when writes are seen.
type TimestampedWindowStore[K, V any] struct{ windows[K, V] }

// Get reads the window of a key that begins at start, and the timestamp it was written with; with
// duplicates, the value put last.
func (s *TimestampedWindowStore[K, V]) Get(key K, start time.Time) (value V, at time.Time, ok bool, err error) {
	value, ms, ok, err := s.get(&key, start)
	if ok {
		at = time.UnixMilli(ms)
	}
	return value, at, ok, err
}

// Put writes the window of a key that begins at start, with a timestamp. A nil value deletes it. A
// window that has expired is not written, which is no error: it counts as a dropped record.
func (s *TimestampedWindowStore[K, V]) Put(key K, value V, start, at time.Time) error {
	return s.put(&key, &value, start, at)
}

// Delete removes the window of a key that begins at start; at becomes the timestamp of the
// tombstone in the changelog.
func (s *TimestampedWindowStore[K, V]) Delete(key K, start, at time.Time) error {
	return s.put(&key, nil, start, at)
}
