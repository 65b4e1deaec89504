package kinds

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Session is a session store over rows.
type Session struct {
	Rows Rows
	Layout
	Clock *Clock

	key []byte // to be used again
}

// SessionEntry is one entry. Its slices are valid until the next turn.
type SessionEntry struct {
	Key        []byte
	Start, End int64
	Value      []byte
}

// sessionSuffix is the length of what follows the user key: end and start.
const sessionSuffix = 8 + 8

// AppendSession appends the changelog's key of a session: key, end, start.
func AppendSession(b, key []byte, start, end int64) []byte {
	return appendTime(appendTime(append(b, key...), end), start)
}

// DecodeSession takes a changelog's key apart. The key is a part of b.
func DecodeSession(b []byte) (key []byte, start, end int64, err error) {
	n := len(b) - sessionSuffix
	if n < 0 {
		return nil, 0, 0, fmt.Errorf("session key of %d bytes, shorter than its end and start (%d)", len(b), sessionSuffix)
	}
	end, start = timeAt(b[n:]), timeAt(b[n+8:])
	return b[:n:n], start, end, checkSession(start, end)
}

func checkSession(start, end int64) error {
	if start > end {
		return fmt.Errorf("session from %d to %d: the end is before the start", start, end)
	}
	if err := checkTime("session start", start); err != nil {
		return err
	}
	return checkTime("session end", end)
}

func (x *Session) row(key []byte, start, end int64) []byte {
	x.key = binary.BigEndian.AppendUint64(x.key[:0], x.segment(end))
	x.key = AppendSession(x.key, key, start, end)
	return x.key
}

// Put writes a session's value, nil removes it.
func (x *Session) Put(key, value []byte, start, end, timestamp int64) error {
	if err := checkSession(start, end); err != nil {
		return err
	}
	x.Clock.Advance(end)
	if x.segment(end) < x.Oldest(x.Clock) {
		return fmt.Errorf("session end %d, stream time %d, retention %d: %w", end, x.Clock.Time, x.Retention, ErrExpired)
	}
	return x.Rows.Put(x.row(key, start, end), value, timestamp, true)
}

// Remove removes a session. One that has expired is gone already.
func (x *Session) Remove(key []byte, start, end, timestamp int64) error {
	if err := checkSession(start, end); err != nil {
		return err
	}
	x.Clock.Advance(end)
	if x.segment(end) < x.Oldest(x.Clock) {
		return nil
	}
	return x.Rows.Put(x.row(key, start, end), nil, timestamp, true)
}

// Restored gives the row of a changelog's key, or no row for one that has expired. The clock
// is to have seen all keys that are restored together: see Observe.
func (x *Session) Restored(b []byte) (row []byte, err error) {
	key, start, end, err := DecodeSession(b)
	if err != nil || x.segment(end) < x.Oldest(x.Clock) {
		return nil, err
	}
	return x.row(key, start, end), nil
}

// Observe moves the clock to a changelog's key.
func (x *Session) Observe(b []byte) error {
	_, _, end, err := DecodeSession(b)
	if err == nil {
		x.Clock.Advance(end)
	}
	return err
}

// Get gives a session's value.
func (x *Session) Get(key []byte, start, end int64) (value []byte, ok bool, err error) {
	if end < x.shownFrom(x.Clock) || checkSession(start, end) != nil {
		return nil, false, nil //nolint:nilerr // a session that cannot be is not there
	}
	value, _, ok, err = x.Rows.Get(x.row(key, start, end))
	return value, ok, err
}

// Find gives the sessions of a key with end >= earliestEnd and start <= latestStart, by end,
// then start.
func (x *Session) Find(key []byte, earliestEnd, latestStart int64, reverse bool) iter.Seq2[SessionEntry, error] {
	return func(yield func(SessionEntry, error) bool) {
		low, high := max(earliestEnd, x.shownFrom(x.Clock)), x.Clock.Now()
		if low > high {
			return
		}
		ranges := keyRanges(x.segment(low), x.segment(high), key, appendTime(nil, low), sessionsUpTo(high))
		user := ranges[0].From[segmentLen : segmentLen+len(key)]
		x.scan(ranges, reverse, func(e *SessionEntry) bool {
			return e.Start <= latestStart && string(e.Key) == string(user)
		}, yield)
	}
}

// FindRange is Find for the keys fromKey <= key < toKey (nil is open), by segment, key, end
// and start.
func (x *Session) FindRange(fromKey, toKey []byte, earliestEnd, latestStart int64, reverse bool) iter.Seq2[SessionEntry, error] {
	return func(yield func(SessionEntry, error) bool) {
		low, high := max(earliestEnd, x.shownFrom(x.Clock)), x.Clock.Now()
		if low > high {
			return
		}
		fromKey, toKey := bytes.Clone(fromKey), bytes.Clone(toKey) // the caller's may change in the loop
		ranges := spanRanges(x.segment(low), x.segment(high), fromKey, toKey, sessionsUpTo(high))
		x.scan(ranges, reverse, func(e *SessionEntry) bool {
			return e.End >= low && e.Start <= latestStart && within(e.Key, fromKey, toKey)
		}, yield)
	}
}

// sessionsUpTo is what follows the user key in the last row with an end of at most end.
func sessionsUpTo(end int64) []byte { return appendTime(appendTime(nil, end), math.MaxInt64) }

// FindByEnd gives the sessions of all keys with earliestEnd <= end <= latestEnd, by end, key
// and start: also those that other reads do not show any more, as long as their segment is
// kept. It holds the sessions found in one segment in memory.
func (x *Session) FindByEnd(earliestEnd, latestEnd int64) iter.Seq2[SessionEntry, error] {
	return func(yield func(SessionEntry, error) bool) {
		low, high := max(earliestEnd, 0), min(latestEnd, x.Clock.Now())
		if low > high {
			return
		}
		var found []SessionEntry
		segment, going := uint64(0), true
		give := func() {
			slices.SortFunc(found, func(a, b SessionEntry) int {
				return cmp.Or(cmp.Compare(a.End, b.End), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start))
			})
			for i := 0; i < len(found) && going; i++ {
				going = yield(found[i], nil)
			}
			found = found[:0]
		}
		ranges := segmentRange(max(x.segment(low), x.Oldest(x.Clock)), x.segment(high))
		x.scan(ranges, false, func(e *SessionEntry) bool { return e.End >= low && e.End <= high }, func(e SessionEntry, err error) bool {
			if err != nil {
				going = false
				yield(e, err)
				return false
			}
			if s := x.segment(e.End); s != segment {
				segment = s
				give()
			}
			e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
			found = append(found, e)
			return going
		})
		give()
	}
}

func (x *Session) scan(ranges []Range, reverse bool, shows func(*SessionEntry) bool, yield func(SessionEntry, error) bool) {
	for r, err := range x.Rows.Scan(ranges, reverse) {
		e, err := sessionEntry(r, err)
		if err != nil {
			yield(SessionEntry{}, err)
			return
		}
		if shows(&e) && !yield(e, nil) {
			return
		}
	}
}

func sessionEntry(r Row, err error) (SessionEntry, error) {
	if err != nil {
		return SessionEntry{}, err
	}
	_, rest, err := SplitSegment(r.Key)
	if err != nil {
		return SessionEntry{}, damaged(err)
	}
	key, start, end, err := DecodeSession(rest)
	return SessionEntry{key, start, end, r.Value}, damaged(err)
}
