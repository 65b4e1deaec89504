package statestore

import (
	"fmt"
	"iter"
	"math"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// Window is a window store of a task, plain or timestamped: a value for a key and the start
// of a window, kept for the retention. It belongs to the task store's owner. Keys are any
// bytes; starts are milliseconds, not negative.
//
// The store's own stream time is the largest start ever written to it. Reads show the windows with
// a start after stream time - retention. Writes into segments (half the retention, at least a minute) that
// have expired as a whole are refused; so a write inside the retention never is.
//
// Its fetches see the store as it is when the loop begins, all writes included; writes made
// in the loop are allowed and not seen. An error ends the loop: it is the second value of the
// last turn, with an empty entry.
type Window struct {
	rows storeRows
	w    kinds.Window
}

// WindowEntry is one entry of a fetch. Its slices are valid until the loop's next turn.
type WindowEntry struct {
	Key []byte
	// Start of the window, in milliseconds.
	Start int64
	Value []byte
	// Timestamp is only set by a timestamped store.
	Timestamp int64
}

// Window gives a registered window store.
func (s *TaskStore) Window(name string) (*Window, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	st, err := s.find(name)
	if err == nil && st.window == nil {
		err = st.isNot("window")
	}
	if err != nil {
		return nil, err
	}
	return st.window, nil
}

// Name is the store's name.
func (w *Window) Name() string { return w.rows.Name() }

// Timestamped tells whether the store keeps timestamps.
func (w *Window) Timestamped() bool { return w.rows.Timestamped() }

// WindowSize is the length of the store's windows, in milliseconds.
func (w *Window) WindowSize() int64 { return w.rows.st.spec.WindowSize.Milliseconds() }

// Retention is how long entries are kept, in milliseconds.
func (w *Window) Retention() int64 { return w.w.Retention }

// StreamTime is the largest start ever written to the store, or [NoStreamTime].
func (w *Window) StreamTime() int64 { return w.w.Clock.Now() }

// Put writes the value of a window; nil deletes it (and does nothing in a store that
// retains duplicates). Key and value are copied. The timestamp is as in [KeyValue.Put]. A
// start whose segment has expired is refused with [ErrExpired]: a dropped record, not a failure.
func (w *Window) Put(key, value []byte, start, timestamp int64) error {
	if w.rows.st.muted {
		return w.rows.s.usable()
	}
	if err := w.w.Put(key, value, start, timestamp); err != nil {
		return fmt.Errorf("window store %q: %w", w.Name(), err)
	}
	return nil
}

// Get gives the value of one window and, from a timestamped store, its timestamp (else 0);
// of a store that retains duplicates, those put last. The value is valid, and must not be
// changed, until the next call on any store of the task.
func (w *Window) Get(key []byte, start int64) (value []byte, timestamp int64, ok bool, err error) {
	w.rows.newer = start > w.rows.s.cachedAfter(w.rows.st)
	value, timestamp, ok, err = w.w.Get(key, start)
	if err != nil {
		return nil, 0, false, w.rows.checked("get", err)
	}
	return value, timestamp, ok, nil
}

// Fetch gives the windows of a key with from <= start <= to, by start.
func (w *Window) Fetch(key []byte, from, to int64) iter.Seq2[WindowEntry, error] {
	return w.entries(w.w.Fetch(key, from, to, false))
}

// ReverseFetch is Fetch from the last start to the first.
func (w *Window) ReverseFetch(key []byte, from, to int64) iter.Seq2[WindowEntry, error] {
	return w.entries(w.w.Fetch(key, from, to, true))
}

// FetchRange gives the windows of the keys fromKey <= key < toKey (nil is open) with
// from <= start <= to, in the order of segment, then the bytes of key and start together.
func (w *Window) FetchRange(fromKey, toKey []byte, from, to int64) iter.Seq2[WindowEntry, error] {
	return w.entries(w.w.FetchRange(fromKey, toKey, from, to, false))
}

// ReverseFetchRange is FetchRange in the opposite order.
func (w *Window) ReverseFetchRange(fromKey, toKey []byte, from, to int64) iter.Seq2[WindowEntry, error] {
	return w.entries(w.w.FetchRange(fromKey, toKey, from, to, true))
}

// FetchAll gives the windows of all keys with from <= start <= to, in the order of FetchRange.
func (w *Window) FetchAll(from, to int64) iter.Seq2[WindowEntry, error] {
	return w.FetchRange(nil, nil, from, to)
}

// ReverseFetchAll is FetchAll in the opposite order.
func (w *Window) ReverseFetchAll(from, to int64) iter.Seq2[WindowEntry, error] {
	return w.ReverseFetchRange(nil, nil, from, to)
}

// All gives all windows, in the order of FetchRange.
func (w *Window) All() iter.Seq2[WindowEntry, error] { return w.FetchAll(0, math.MaxInt64) }

// ReverseAll is All in the opposite order.
func (w *Window) ReverseAll() iter.Seq2[WindowEntry, error] {
	return w.ReverseFetchAll(0, math.MaxInt64)
}

func (w *Window) entries(seq iter.Seq2[kinds.WindowEntry, error]) iter.Seq2[WindowEntry, error] {
	return entries(&w.rows, seq, func(e kinds.WindowEntry) WindowEntry { return WindowEntry(e) })
}
