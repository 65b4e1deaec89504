package processor

import (
	"errors"
	"iter"
	"math"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// WindowHandle declares a window store and opens it.
type WindowHandle[K, V any] struct{ declared[K, V] }

// Window declares a window store: a value for a key and the start of a window. size is the
// length of the windows; retention, at least size, is how long they are kept. Both are whole
// milliseconds.
//
// Time is the store's own: the largest start ever written to it. A window whose start is at or
// before that minus retention is not read any more.
func Window[K, V any](name string, key serde.Serde[K], value serde.Serde[V], size, retention time.Duration) WindowHandle[K, V] {
	return WindowHandle[K, V]{declareWindow(statestore.KindWindow, name, key, value, size, retention)}
}

func declareWindow[K, V any](kind statestore.Kind, name string, key serde.Serde[K], value serde.Serde[V], size, retention time.Duration) declared[K, V] {
	d := declare(kind, name, key, value)
	d.def.WindowSize, d.def.Retention = size, retention
	return d
}

// RetainDuplicates keeps every value put for a key and start, instead of the last one: the store
// is a log of values by time. Nothing can be deleted from it.
func (h WindowHandle[K, V]) RetainDuplicates() WindowHandle[K, V] {
	h.def.RetainDuplicates = true
	return h
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h WindowHandle[K, V]) InMemory() WindowHandle[K, V] {
	return WindowHandle[K, V]{h.inMemory()}
}

// Unlogged is [KeyValueHandle.Unlogged] for this kind.
func (h WindowHandle[K, V]) Unlogged() WindowHandle[K, V] {
	return WindowHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h WindowHandle[K, V]) KeptIn(open StoreOpener) WindowHandle[K, V] {
	return WindowHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h WindowHandle[K, V]) SchemaVersion(version uint32) WindowHandle[K, V] {
	return WindowHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h WindowHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) WindowHandle[K, V] {
	return WindowHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h WindowHandle[K, V]) In(ctx StoreContext) *WindowStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.Window, a access) *WindowStore[K, V] {
		return &WindowStore[K, V]{windows[K, V]{newCodec(h.declared, a), raw, h.def.WindowSize}}
	})
}

// WindowEntry is one window of a key.
type WindowEntry[K, V any] struct {
	Key K
	// Start is within the window, End is not.
	Start, End time.Time
	Value      V
	// Timestamp is that of the value in a timestamped store; in a plain one the zero time.
	Timestamp time.Time
}

// WindowStore is a typed window store. See [KeyValueStore] for when writes are seen.
//
// Fetches take times that are inclusive at both ends, as in Kafka Streams; the zero time is an
// open end. What they give of one key is in the order of the starts. What they give of several
// keys is ordered by segment (a stretch of time, at least a minute, that expires as a whole), key and
// start; the reverse ones are in the opposite order. The loop may write: it goes on over the store
// as it was when the iteration began. An error ends it, as the second value of the last turn.
type WindowStore[K, V any] struct{ windows[K, V] }

// Get reads the window of a key that begins at start; with duplicates, the value put last.
func (s *WindowStore[K, V]) Get(key K, start time.Time) (value V, ok bool, err error) {
	value, _, ok, err = s.get(&key, start)
	return value, ok, err
}

// Put writes the window of a key that begins at start. A nil value deletes it. A window that has
// expired is not written, which is no error: it counts as a dropped record.
func (s *WindowStore[K, V]) Put(key K, value V, start time.Time) error {
	return s.put(&key, &value, start, s.now())
}

// Delete removes the window of a key that begins at start.
func (s *WindowStore[K, V]) Delete(key K, start time.Time) error {
	return s.put(&key, nil, start, s.now())
}

// windows is what plain and timestamped window stores share.
type windows[K, V any] struct {
	codec[K, V]
	raw  *statestore.Window
	size time.Duration
}

// Fetch gives the windows of a key with from <= start <= to.
func (s *windows[K, V]) Fetch(key K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetch(&key, from, to, (*statestore.Window).Fetch)
}

// ReverseFetch is Fetch from the last start to the first.
func (s *windows[K, V]) ReverseFetch(key K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetch(&key, from, to, (*statestore.Window).ReverseFetch)
}

// FetchRange gives the windows with fromKey <= key < toKey, in the order of the keys' bytes, and
// from <= start <= to. A nil key, of a type that has nil, is an open end.
func (s *windows[K, V]) FetchRange(fromKey, toKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(&fromKey, &toKey, from, to, (*statestore.Window).FetchRange)
}

// ReverseFetchRange is FetchRange in the opposite order.
func (s *windows[K, V]) ReverseFetchRange(fromKey, toKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(&fromKey, &toKey, from, to, (*statestore.Window).ReverseFetchRange)
}

// FetchAll gives the windows of all keys with from <= start <= to.
func (s *windows[K, V]) FetchAll(from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.scan(func(w *statestore.Window) rawWindows { return w.FetchAll(earliest(from), latest(to)) })
}

// ReverseFetchAll is FetchAll in the opposite order.
func (s *windows[K, V]) ReverseFetchAll(from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.scan(func(w *statestore.Window) rawWindows { return w.ReverseFetchAll(earliest(from), latest(to)) })
}

// All gives every window.
func (s *windows[K, V]) All() iter.Seq2[WindowEntry[K, V], error] {
	return s.scan(func(w *statestore.Window) rawWindows { return w.All() })
}

// ReverseAll is All in the opposite order.
func (s *windows[K, V]) ReverseAll() iter.Seq2[WindowEntry[K, V], error] {
	return s.scan(func(w *statestore.Window) rawWindows { return w.ReverseAll() })
}

func (s *windows[K, V]) get(key *K, start time.Time) (value V, ms int64, ok bool, err error) {
	k, err := s.keyBytes(key)
	if err != nil {
		return value, 0, false, err
	}
	b, ms, ok, err := s.raw.Get(k, start.UnixMilli())
	if !ok || err != nil {
		return value, 0, false, err
	}
	value, err = s.decodeValue(b)
	return value, ms, err == nil, err
}

// put writes a window; a nil pointer deletes it, as a nil value does.
func (s *windows[K, V]) put(key *K, value *V, start, at time.Time) error {
	k, err := s.keyBytes(key)
	if err != nil {
		return err
	}
	var v []byte
	if value != nil {
		if v, err = s.valueBytes(value); err != nil {
			return err
		}
	}
	first, err := s.time(start)
	if err != nil {
		return err
	}
	ms, err := s.time(at)
	if err != nil {
		return err
	}
	return s.late("expired window", s.raw.Put(k, v, first, ms))
}

// late counts a write that came too late, which is no error.
func (a *access) late(reason string, err error) error {
	if !errors.Is(err, statestore.ErrExpired) {
		return err
	}
	a.stores.dropped(reason)
	return nil
}

type rawWindows = iter.Seq2[statestore.WindowEntry, error]

func (s *windows[K, V]) fetch(key *K, from, to time.Time, fetch func(w *statestore.Window, key []byte, from, to int64) rawWindows) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		k, err := s.ownKeyBytes(key)
		if err != nil {
			yield(WindowEntry[K, V]{}, err)
			return
		}
		s.scan(func(w *statestore.Window) rawWindows { return fetch(w, k, earliest(from), latest(to)) })(yield)
	}
}

func (s *windows[K, V]) fetchRange(fromKey, toKey *K, from, to time.Time, fetch func(w *statestore.Window, fromKey, toKey []byte, from, to int64) rawWindows) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		lo, hi, err := s.bounds(fromKey, toKey)
		if err != nil {
			yield(WindowEntry[K, V]{}, err)
			return
		}
		s.scan(func(w *statestore.Window) rawWindows { return fetch(w, lo, hi, earliest(from), latest(to)) })(yield)
	}
}

func (s *windows[K, V]) scan(scan func(*statestore.Window) rawWindows) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		if err := s.usable(); err != nil {
			yield(WindowEntry[K, V]{}, err)
			return
		}
		for e, err := range scan(s.raw) {
			var t WindowEntry[K, V]
			if err == nil {
				t.Start = time.UnixMilli(e.Start)
				t.End = t.Start.Add(s.size)
				if s.raw.Timestamped() {
					t.Timestamp = time.UnixMilli(e.Timestamp)
				}
				t.Key, t.Value, err = s.decode(e.Key, e.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
			if err := s.usable(); err != nil {
				yield(WindowEntry[K, V]{}, err)
				return
			}
		}
	}
}

// earliest and latest give the ends of a stretch of time in milliseconds; the zero time is an
// open end.
func earliest(t time.Time) int64 { return max(t.UnixMilli(), 0) }

func latest(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixMilli()
}
