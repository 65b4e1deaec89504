package processor

import (
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// SessionHandle declares a session store and opens it.
type SessionHandle[K, V any] struct{ declared[K, V] }

// Session declares a session store: a value for a key and a session, which has a start and an
// end. retention, in whole milliseconds, is how long sessions are kept.
//
// Time is the store's own: the largest end ever written to it. A session whose end is at or
// before that minus retention is not read any more.
func Session[K, V any](name string, key serde.Serde[K], value serde.Serde[V], retention time.Duration) SessionHandle[K, V] {
	d := declare(statestore.KindSession, name, key, value)
	d.def.Retention = retention
	return SessionHandle[K, V]{d}
}

// InMemory keeps the store in memory: nothing of it is on the disk, and it is restored from its
// changelog at every start.
func (h SessionHandle[K, V]) InMemory() SessionHandle[K, V] {
	return SessionHandle[K, V]{h.inMemory()}
}

// Unlogged is [KeyValueHandle.Unlogged] for this kind.
func (h SessionHandle[K, V]) Unlogged() SessionHandle[K, V] {
	return SessionHandle[K, V]{h.unlogged()}
}

// KeptIn keeps the store's committed rows in a store of the program's own, which open opens for
// each task. Make such a handle once: two of them are two stores.
func (h SessionHandle[K, V]) KeptIn(open StoreOpener) SessionHandle[K, V] {
	return SessionHandle[K, V]{h.keptIn(open)}
}

// SchemaVersion says which version of the values' meaning the program writes, from 1 on. A store
// with values of another version does not open: see Migrate.
func (h SessionHandle[K, V]) SchemaVersion(version uint32) SessionHandle[K, V] {
	return SessionHandle[K, V]{h.schemaVersion(version)}
}

// Migrate changes values that were written with an older SchemaVersion (0: with none) when the store is opened or
// restored. from gets them as bytes, gives the same for the same arguments, and stays in the program
// as long as the changelog can hold such values: see [statestore.Migration]. Make such a handle once.
func (h SessionHandle[K, V]) Migrate(from func(version uint32, key K, old []byte) (V, error)) SessionHandle[K, V] {
	return SessionHandle[K, V]{h.migrating(from)}
}

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h SessionHandle[K, V]) In(ctx StoreContext) *SessionStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.Session, a access) *SessionStore[K, V] {
		return &SessionStore[K, V]{newCodec(h.declared, a), raw}
	})
}

// SessionEntry is one session of a key.
type SessionEntry[K, V any] struct {
	Key K
	// Start and End are both within the session.
	Start, End time.Time
	Value      V
}

// SessionStore is a typed session store. See [KeyValueStore] for when writes are seen.
//
// Where times are given to a search, the zero time is an open end. What is found of one key is
// in the order of the ends, then of the starts. What is found of several keys is ordered by
// segment (a stretch of time, at least a minute, that expires as a whole), key, end and start; the
// reverse searches are in the opposite order. The loop may write: it goes on over the store as it
// was when the iteration began. An error ends it, as the second value of the last turn.
type SessionStore[K, V any] struct {
	codec[K, V]
	raw *statestore.Session
}

// Get reads one session of a key.
func (s *SessionStore[K, V]) Get(key K, start, end time.Time) (value V, ok bool, err error) {
	k, err := s.keyBytes(&key)
	if err != nil {
		return value, false, err
	}
	b, ok, err := s.raw.Get(k, start.UnixMilli(), end.UnixMilli())
	if !ok || err != nil {
		return value, false, err
	}
	value, err = s.decodeValue(b)
	return value, err == nil, err
}

// Put writes a session of a key. A nil value removes it. A session that has expired is not
// written, which is no error: it counts as a dropped record.
func (s *SessionStore[K, V]) Put(key K, value V, start, end time.Time) error {
	if err := s.usable(); err != nil {
		return err
	}
	v, err := s.valueBytes(&value)
	if err != nil {
		return err
	}
	return s.write(&key, v, start, end)
}

// Remove removes a session of a key, also one that is not there.
func (s *SessionStore[K, V]) Remove(key K, start, end time.Time) error {
	return s.write(&key, nil, start, end)
}

func (s *SessionStore[K, V]) write(key *K, value []byte, start, end time.Time) error {
	k, err := s.keyBytes(key)
	if err != nil {
		return err
	}
	first, err := s.time(start)
	if err != nil {
		return err
	}
	last, err := s.time(end)
	if err != nil {
		return err
	}
	if last < first {
		return fmt.Errorf("write to store %s: the session ends at %d ms, before it starts at %d ms", s.name, last, first)
	}
	ms, err := s.time(s.now())
	if err != nil {
		return err
	}
	return s.late("expired session", s.raw.Put(k, value, first, last, ms))
}

// Find gives the sessions of a key with end >= earliestEnd and start <= latestStart: those that
// touch the time between the two.
func (s *SessionStore[K, V]) Find(key K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKey(&key, func(x *statestore.Session, key []byte) rawSessions {
		return x.Find(key, earliest(earliestEnd), latest(latestStart))
	})
}

// ReverseFind is Find in the opposite order.
func (s *SessionStore[K, V]) ReverseFind(key K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKey(&key, func(x *statestore.Session, key []byte) rawSessions {
		return x.ReverseFind(key, earliest(earliestEnd), latest(latestStart))
	})
}

// FindRange is Find for the keys with fromKey <= key < toKey, in the order of their bytes. A nil
// key, of a type that has nil, is an open end.
func (s *SessionStore[K, V]) FindRange(fromKey, toKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, &toKey, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.FindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// ReverseFindRange is FindRange in the opposite order.
func (s *SessionStore[K, V]) ReverseFindRange(fromKey, toKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, &toKey, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.ReverseFindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// FindByEnd gives the sessions of all keys with earliestEnd <= end <= latestEnd.
func (s *SessionStore[K, V]) FindByEnd(earliestEnd, latestEnd time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.scan(func(x *statestore.Session) rawSessions {
		return x.FindByEnd(earliest(earliestEnd), latest(latestEnd))
	})
}

// Fetch gives all sessions of a key.
func (s *SessionStore[K, V]) Fetch(key K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKey(&key, (*statestore.Session).Fetch)
}

// ReverseFetch is Fetch in the opposite order.
func (s *SessionStore[K, V]) ReverseFetch(key K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKey(&key, (*statestore.Session).ReverseFetch)
}

// FetchRange gives all sessions of the keys with fromKey <= key < toKey, in the order of their
// bytes. A nil key, of a type that has nil, is an open end.
func (s *SessionStore[K, V]) FetchRange(fromKey, toKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, &toKey, (*statestore.Session).FetchRange)
}

// ReverseFetchRange is FetchRange in the opposite order.
func (s *SessionStore[K, V]) ReverseFetchRange(fromKey, toKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, &toKey, (*statestore.Session).ReverseFetchRange)
}

// All gives every session.
func (s *SessionStore[K, V]) All() iter.Seq2[SessionEntry[K, V], error] {
	return s.scan((*statestore.Session).All)
}

type rawSessions = iter.Seq2[statestore.SessionEntry, error]

func (s *SessionStore[K, V]) ofKey(key *K, scan func(x *statestore.Session, key []byte) rawSessions) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		k, err := s.ownKeyBytes(key)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		s.scan(func(x *statestore.Session) rawSessions { return scan(x, k) })(yield)
	}
}

func (s *SessionStore[K, V]) ofKeys(from, to *K, scan func(x *statestore.Session, from, to []byte) rawSessions) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		lo, hi, err := s.bounds(from, to)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		s.scan(func(x *statestore.Session) rawSessions { return scan(x, lo, hi) })(yield)
	}
}

func (s *SessionStore[K, V]) scan(scan func(*statestore.Session) rawSessions) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		if err := s.usable(); err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		for e, err := range scan(s.raw) {
			var t SessionEntry[K, V]
			if err == nil {
				t.Start, t.End = time.UnixMilli(e.Start), time.UnixMilli(e.End)
				t.Key, t.Value, err = s.decode(e.Key, e.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
			if err := s.usable(); err != nil {
				yield(SessionEntry[K, V]{}, err)
				return
			}
		}
	}
}
