package processor

import (
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// The ranges with one open end, for key types that have no nil to say so.

// RangeTo gives the entries with key < to.
func (s *KeyValueStore[K, V]) RangeTo(to K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(nil, &to, (*statestore.KeyValue).Range))
}

// ReverseRangeFrom gives the entries with from <= key, the last key first.
func (s *KeyValueStore[K, V]) ReverseRangeFrom(from K) iter.Seq2[Entry[K, V], error] {
	return withoutTimes(s.between(&from, nil, (*statestore.KeyValue).ReverseRange))
}

// RangeTo gives the entries with key < to.
func (s *TimestampedKeyValueStore[K, V]) RangeTo(to K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(nil, &to, (*statestore.KeyValue).Range)
}

// ReverseRangeFrom gives the entries with from <= key, the last key first.
func (s *TimestampedKeyValueStore[K, V]) ReverseRangeFrom(from K) iter.Seq2[TimestampedEntry[K, V], error] {
	return s.between(&from, nil, (*statestore.KeyValue).ReverseRange)
}

// FetchRangeFrom gives the windows with fromKey <= key and from <= start <= to.
func (s *windows[K, V]) FetchRangeFrom(fromKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(&fromKey, nil, from, to, (*statestore.Window).FetchRange)
}

// ReverseFetchRangeFrom is FetchRangeFrom in the opposite order.
func (s *windows[K, V]) ReverseFetchRangeFrom(fromKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(&fromKey, nil, from, to, (*statestore.Window).ReverseFetchRange)
}

// FetchRangeTo gives the windows with key < toKey and from <= start <= to.
func (s *windows[K, V]) FetchRangeTo(toKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(nil, &toKey, from, to, (*statestore.Window).FetchRange)
}

// ReverseFetchRangeTo is FetchRangeTo in the opposite order.
func (s *windows[K, V]) ReverseFetchRangeTo(toKey K, from, to time.Time) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetchRange(nil, &toKey, from, to, (*statestore.Window).ReverseFetchRange)
}

// FindRangeFrom is Find for the keys with fromKey <= key.
func (s *SessionStore[K, V]) FindRangeFrom(fromKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, nil, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.FindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// ReverseFindRangeFrom is FindRangeFrom in the opposite order.
func (s *SessionStore[K, V]) ReverseFindRangeFrom(fromKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, nil, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.ReverseFindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// FindRangeTo is Find for the keys with key < toKey.
func (s *SessionStore[K, V]) FindRangeTo(toKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(nil, &toKey, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.FindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// ReverseFindRangeTo is FindRangeTo in the opposite order.
func (s *SessionStore[K, V]) ReverseFindRangeTo(toKey K, earliestEnd, latestStart time.Time) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(nil, &toKey, func(x *statestore.Session, from, to []byte) rawSessions {
		return x.ReverseFindRange(from, to, earliest(earliestEnd), latest(latestStart))
	})
}

// FetchRangeFrom gives all sessions of the keys with fromKey <= key.
func (s *SessionStore[K, V]) FetchRangeFrom(fromKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, nil, (*statestore.Session).FetchRange)
}

// ReverseFetchRangeFrom is FetchRangeFrom in the opposite order.
func (s *SessionStore[K, V]) ReverseFetchRangeFrom(fromKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(&fromKey, nil, (*statestore.Session).ReverseFetchRange)
}

// FetchRangeTo gives all sessions of the keys with key < toKey.
func (s *SessionStore[K, V]) FetchRangeTo(toKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(nil, &toKey, (*statestore.Session).FetchRange)
}

// ReverseFetchRangeTo is FetchRangeTo in the opposite order.
func (s *SessionStore[K, V]) ReverseFetchRangeTo(toKey K) iter.Seq2[SessionEntry[K, V], error] {
	return s.ofKeys(nil, &toKey, (*statestore.Session).ReverseFetchRange)
}
