package processor

import (
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// VersionedHandle declares a versioned store and opens it.
type VersionedHandle[K, V any] struct{ declared[K, V] }

// Versioned declares a versioned store: the newest value of each key, and those before it for as
// long as history, in whole milliseconds, goes back.
//
// Time is the store's own: the largest timestamp ever written to it.
func Versioned[K, V any](name string, key serde.Serde[K], value serde.Serde[V], history time.Duration) VersionedHandle[K, V] {
	d := declare(statestore.KindVersioned, name, key, value)
	d.def.Retention = history
	return VersionedHandle[K, V]{d}
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h VersionedHandle[K, V]) InMemory() VersionedHandle[K, V] {
	return VersionedHandle[K, V]{h.inMemory()}
}

// Unlogged is [KeyValueHandle.Unlogged] for this kind.
func (h VersionedHandle[K, V]) Unlogged() VersionedHandle[K, V] {
	return VersionedHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h VersionedHandle[K, V]) KeptIn(open StoreOpener) VersionedHandle[K, V] {
	return VersionedHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h VersionedHandle[K, V]) SchemaVersion(version uint32) VersionedHandle[K, V] {
	return VersionedHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h VersionedHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) VersionedHandle[K, V] {
	return VersionedHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h VersionedHandle[K, V]) In(ctx StoreContext) *VersionedStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.Versioned, a access) *VersionedStore[K, V] {
		return &VersionedStore[K, V]{newCodec(h.declared, a), raw}
	})
}

// Version is a value of a key and when it was valid: from From on, until before To.
type Version[K, V any] struct {
	Key      K
	Value    V
	From, To time.Time
	// Current: it is valid until further notice, and To is the zero time.
	Current bool
}

// PutResult is what became of a put into a versioned store.
type PutResult struct {
	// Stored is false for a version older than the history; the rest is then zero.
	Stored bool
	// Current: the version put is the newest one, valid until further notice.
	Current bool
	// ValidTo is, unless Current, when the next newer version begins.
	ValidTo time.Time
}

// VersionedStore is a typed versioned store. See [KeyValueStore] for when writes are seen.
type VersionedStore[K, V any] struct {
	codec[K, V]
	raw *statestore.Versioned
}

// Put writes the value that is valid from at on; a nil value says that from then on there is
// none. A version with the same timestamp is replaced. One older than the history is not
// written, which is no error: it counts as a dropped record.
func (s *VersionedStore[K, V]) Put(key K, value V, at time.Time) (PutResult, error) {
	if err := s.usable(); err != nil {
		return PutResult{}, err
	}
	v, err := s.valueBytes(&value)
	if err != nil {
		return PutResult{}, err
	}
	return s.write(&key, v, at)
}

// PutNull is [VersionedStore.Put] of nil, for every type of values. In contrast to Delete it does not look for
// the version before.
func (s *VersionedStore[K, V]) PutNull(key K, at time.Time) (PutResult, error) {
	return s.write(&key, nil, at)
}

func (s *VersionedStore[K, V]) write(key *K, v []byte, at time.Time) (PutResult, error) {
	k, err := s.keyBytes(key)
	if err != nil {
		return PutResult{}, err
	}
	ms, err := s.time(at)
	if err != nil {
		return PutResult{}, err
	}
	r, err := s.raw.Put(k, v, ms)
	if err != nil {
		return PutResult{}, err
	}
	out := PutResult{Stored: r.Stored, Current: r.Current}
	switch {
	case !r.Stored:
		s.stores.dropped(expiredVersion)
	case !r.Current:
		out.ValidTo = time.UnixMilli(r.ValidTo)
	}
	return out, nil
}

const expiredVersion = "expired version"

// Delete says that the key has no value from at on, and gives the version that was valid then; ok
// is false if there was none. A time before the history is treated as by Put.
func (s *VersionedStore[K, V]) Delete(key K, at time.Time) (before Version[K, V], ok bool, err error) {
	k, err := s.keyBytes(&key)
	if err != nil {
		return before, false, err
	}
	ms, err := s.time(at)
	if err != nil {
		return before, false, err
	}
	if now := s.raw.StreamTime(); now != statestore.NoStreamTime && ms < now-s.raw.History() {
		s.stores.dropped(expiredVersion)
		return before, false, nil
	}
	return s.one(s.raw.Delete(k, ms))
}

// Get gives the newest version of a key.
func (s *VersionedStore[K, V]) Get(key K) (v Version[K, V], ok bool, err error) {
	k, err := s.keyBytes(&key)
	if err != nil {
		return v, false, err
	}
	return s.one(s.raw.Get(k))
}

// GetAsOf gives the version of a key that was valid at asOf. Of the time before the history only
// a version is known that is still the newest.
func (s *VersionedStore[K, V]) GetAsOf(key K, asOf time.Time) (v Version[K, V], ok bool, err error) {
	k, err := s.keyBytes(&key)
	if err != nil {
		return v, false, err
	}
	return s.one(s.raw.GetAsOf(k, asOf.UnixMilli()))
}

// Versions gives the versions of a key that were valid at any time between from and to, both
// inclusive, the oldest first. The zero time is an open end. The loop may write: it goes on over
// the store as it was when the iteration began. An error ends it, as the second value of the last turn.
func (s *VersionedStore[K, V]) Versions(key K, from, to time.Time) iter.Seq2[Version[K, V], error] {
	return s.versions(&key, from, to, (*statestore.Versioned).Versions)
}

// ReverseVersions is Versions with the newest first.
func (s *VersionedStore[K, V]) ReverseVersions(key K, from, to time.Time) iter.Seq2[Version[K, V], error] {
	return s.versions(&key, from, to, (*statestore.Versioned).ReverseVersions)
}

// All gives every version of every key. Those of one key come with the oldest first; nothing
// else is said of the order.
func (s *VersionedStore[K, V]) All() iter.Seq2[Version[K, V], error] {
	return s.scan((*statestore.Versioned).All)
}

func (s *VersionedStore[K, V]) one(raw statestore.Version, found bool, rawErr error) (v Version[K, V], ok bool, err error) {
	if !found || rawErr != nil {
		return v, false, rawErr
	}
	if v, err = s.version(raw); err != nil {
		return Version[K, V]{}, false, err
	}
	return v, true, nil
}

func (s *VersionedStore[K, V]) version(raw statestore.Version) (v Version[K, V], err error) {
	v.From, v.Current = time.UnixMilli(raw.From), raw.Current
	if !raw.Current {
		v.To = time.UnixMilli(raw.To)
	}
	v.Key, v.Value, err = s.decode(raw.Key, raw.Value)
	return v, err
}

type rawVersions = iter.Seq2[statestore.Version, error]

func (s *VersionedStore[K, V]) versions(key *K, from, to time.Time, scan func(v *statestore.Versioned, key []byte, from, to int64) rawVersions) iter.Seq2[Version[K, V], error] {
	return func(yield func(Version[K, V], error) bool) {
		k, err := s.ownKeyBytes(key)
		if err != nil {
			yield(Version[K, V]{}, err)
			return
		}
		s.scan(func(v *statestore.Versioned) rawVersions { return scan(v, k, earliest(from), latest(to)) })(yield)
	}
}

func (s *VersionedStore[K, V]) scan(scan func(*statestore.Versioned) rawVersions) iter.Seq2[Version[K, V], error] {
	return func(yield func(Version[K, V], error) bool) {
		if err := s.usable(); err != nil {
			yield(Version[K, V]{}, err)
			return
		}
		for e, err := range scan(s.raw) {
			var v Version[K, V]
			if err == nil {
				v, err = s.version(e)
			}
			if !yield(v, err) || err != nil {
				return
			}
			if err := s.usable(); err != nil {
				yield(Version[K, V]{}, err)
				return
			}
		}
	}
}
