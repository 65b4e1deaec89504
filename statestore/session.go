package statestore

import (
	"fmt"
	"iter"
	"math"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// Session is a session store of a task: a value for a key and a session's start and end,
// kept for the retention. It belongs to the task store's owner. Keys are any bytes; times
// are milliseconds, 0 <= start <= end.
//
// The store's own stream time is the largest end ever written to it. For retention, expiry
// and scans it is as with [Window], with the session's end in place of the start.
type Session struct {
	rows storeRows
	x    kinds.Session
}

// SessionEntry is one entry of a scan. Its slices are valid until the loop's next turn.
type SessionEntry struct {
	Key []byte
	// Start and End of the session, both inclusive, in milliseconds.
	Start, End int64
	Value      []byte
}

// Session gives a registered session store.
func (s *TaskStore) Session(name string) (*Session, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	st, err := s.find(name)
	if err == nil && st.session == nil {
		err = st.isNot("session")
	}
	if err != nil {
		return nil, err
	}
	return st.session, nil
}

// Name is the store's name.
func (x *Session) Name() string { return x.rows.Name() }

// Retention is how long sessions are kept, in milliseconds.
func (x *Session) Retention() int64 { return x.x.Retention }

// StreamTime is the largest end ever written to the store, or [NoStreamTime].
func (x *Session) StreamTime() int64 { return x.x.Clock.Now() }

// Put writes the value of a session; nil removes it. Key and value are copied. The timestamp is
// that of the record that causes the write, for the changelog. A session whose segment has
// expired is refused with [ErrExpired]: a dropped record, not a failure.
func (x *Session) Put(key, value []byte, start, end, timestamp int64) error {
	if x.rows.st.muted {
		return x.rows.s.usable()
	}
	if err := x.x.Put(key, value, start, end, timestamp); err != nil {
		return fmt.Errorf("session store %q: %w", x.Name(), err)
	}
	return nil
}

// Remove removes a session, also one that is not there, or has expired. See Put for the timestamp.
func (x *Session) Remove(key []byte, start, end, timestamp int64) error {
	if x.rows.st.muted {
		return x.rows.s.usable()
	}
	if err := x.x.Remove(key, start, end, timestamp); err != nil {
		return fmt.Errorf("session store %q: %w", x.Name(), err)
	}
	return nil
}

// Get gives the value of one session. It is valid, and must not be changed, until the next
// call on any store of the task.
func (x *Session) Get(key []byte, start, end int64) (value []byte, ok bool, err error) {
	value, ok, err = x.x.Get(key, start, end)
	if err != nil {
		return nil, false, x.rows.checked("get", err)
	}
	return value, ok, nil
}

// Find gives the sessions of a key with end >= earliestEnd and start <= latestStart, by
// end, then start.
func (x *Session) Find(key []byte, earliestEnd, latestStart int64) iter.Seq2[SessionEntry, error] {
	return x.entries(x.x.Find(key, earliestEnd, latestStart, false))
}

// ReverseFind is Find in the opposite order.
func (x *Session) ReverseFind(key []byte, earliestEnd, latestStart int64) iter.Seq2[SessionEntry, error] {
	return x.entries(x.x.Find(key, earliestEnd, latestStart, true))
}

// FindRange is Find for the keys fromKey <= key < toKey (nil is open), in the order of
// segment, then the bytes of key, end and start together.
func (x *Session) FindRange(fromKey, toKey []byte, earliestEnd, latestStart int64) iter.Seq2[SessionEntry, error] {
	return x.entries(x.x.FindRange(fromKey, toKey, earliestEnd, latestStart, false))
}

// ReverseFindRange is FindRange in the opposite order.
func (x *Session) ReverseFindRange(fromKey, toKey []byte, earliestEnd, latestStart int64) iter.Seq2[SessionEntry, error] {
	return x.entries(x.x.FindRange(fromKey, toKey, earliestEnd, latestStart, true))
}

// FindByEnd gives the sessions of all keys with earliestEnd <= end <= latestEnd, by end, key
// and start. It is for those who look for sessions that have closed, so it also gives what
// other reads do not show any more because of the retention, as long as it has not been
// removed. It holds what it finds in one segment in memory.
func (x *Session) FindByEnd(earliestEnd, latestEnd int64) iter.Seq2[SessionEntry, error] {
	return x.entries(x.x.FindByEnd(earliestEnd, latestEnd))
}

// Fetch gives all sessions of a key, by end, then start.
func (x *Session) Fetch(key []byte) iter.Seq2[SessionEntry, error] {
	return x.Find(key, 0, math.MaxInt64)
}

// ReverseFetch is Fetch in the opposite order.
func (x *Session) ReverseFetch(key []byte) iter.Seq2[SessionEntry, error] {
	return x.ReverseFind(key, 0, math.MaxInt64)
}

// FetchRange gives all sessions of the keys fromKey <= key < toKey (nil is open), in the
// order of FindRange.
func (x *Session) FetchRange(fromKey, toKey []byte) iter.Seq2[SessionEntry, error] {
	return x.FindRange(fromKey, toKey, 0, math.MaxInt64)
}

// ReverseFetchRange is FetchRange in the opposite order.
func (x *Session) ReverseFetchRange(fromKey, toKey []byte) iter.Seq2[SessionEntry, error] {
	return x.ReverseFindRange(fromKey, toKey, 0, math.MaxInt64)
}

// All gives all sessions, in the order of FindRange.
func (x *Session) All() iter.Seq2[SessionEntry, error] { return x.FetchRange(nil, nil) }

func (x *Session) entries(seq iter.Seq2[kinds.SessionEntry, error]) iter.Seq2[SessionEntry, error] {
	return entries(&x.rows, seq, func(e kinds.SessionEntry) SessionEntry { return SessionEntry(e) })
}
