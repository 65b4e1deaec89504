package kinds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// Window is a window store over rows.
type Window struct {
	Rows Rows
	Layout
	// Duplicates keeps every value put for a key and start.
	Duplicates bool
	Clock      *Clock

	key, value []byte // to be used again
}

// WindowEntry is one entry. Its slices are valid until the next turn.
type WindowEntry struct {
	Key       []byte
	Start     int64
	Value     []byte
	Timestamp int64
}

// windowSuffix is the length of what follows the user key: start and sequence.
const windowSuffix = 8 + 4

// maxSequence is where the numbers of duplicates begin anew, as in Kafka Streams.
const maxSequence = math.MaxInt32

// AppendWindow appends the changelog's key of a window: key, start, sequence.
func AppendWindow(b, key []byte, start int64, sequence uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTime(append(b, key...), start), sequence)
}

// DecodeWindow takes a changelog's key apart. The key is a part of b.
func DecodeWindow(b []byte) (key []byte, start int64, sequence uint32, err error) {
	n := len(b) - windowSuffix
	if n < 0 {
		return nil, 0, 0, fmt.Errorf("window key of %d bytes, shorter than its start and sequence (%d)", len(b), windowSuffix)
	}
	start, sequence = timeAt(b[n:]), binary.BigEndian.Uint32(b[n+8:])
	return b[:n:n], start, sequence, checkTime("window key with start", start)
}

func (w *Window) row(key []byte, start int64, sequence uint32) []byte {
	w.key = binary.BigEndian.AppendUint64(w.key[:0], w.segment(start))
	w.key = AppendWindow(w.key, key, start, sequence)
	return w.key
}

// Put writes a window's value, nil deletes it.
func (w *Window) Put(key, value []byte, start, timestamp int64) error {
	if err := checkTime("window start", start); err != nil {
		return err
	}
	if value == nil && w.Duplicates {
		return nil // Kafka Streams does not say which one it would be
	}
	w.Clock.Advance(start)
	if w.segment(start) < w.Oldest(w.Clock) {
		return fmt.Errorf("window start %d, stream time %d, retention %d: %w", start, w.Clock.Time, w.Retention, ErrExpired)
	}
	if w.Duplicates {
		w.Clock.Sequence = (w.Clock.Sequence + 1) & maxSequence
		return w.Rows.Put(w.row(key, start, w.Clock.Sequence), value, timestamp, true)
	}
	return w.Rows.Put(w.row(key, start, 0), value, timestamp, true)
}

// Restored gives the row of a changelog's key, or no row for one that has expired. The clock
// is to have seen all keys that are restored together: see Observe.
func (w *Window) Restored(b []byte) (row []byte, err error) {
	key, start, sequence, err := DecodeWindow(b)
	if err != nil || w.segment(start) < w.Oldest(w.Clock) {
		return nil, err
	}
	return w.row(key, start, sequence), nil
}

// Observe moves the clock to a changelog's key.
func (w *Window) Observe(b []byte) error {
	_, start, sequence, err := DecodeWindow(b)
	if err != nil {
		return err
	}
	if !w.Duplicates && sequence != 0 {
		return fmt.Errorf("window key with sequence %d, in a store that does not retain duplicates", sequence)
	}
	first := !w.Clock.Known
	w.Clock.Advance(start)
	if first || later(sequence, w.Clock.Sequence) {
		w.Clock.Sequence = sequence
	}
	return nil
}

// later tells whether sequence a was given after b. They begin anew, and those of one commit
// stand in the changelog in the order of their keys: what is less than half of them ahead is later.
func later(a, b uint32) bool { return a != b && (a-b)&maxSequence <= maxSequence/2 }

// Get gives a window's value; with duplicates the one put last.
func (w *Window) Get(key []byte, start int64) (value []byte, timestamp int64, ok bool, err error) {
	if start < w.shownFrom(w.Clock) || start > maxTime {
		return nil, 0, false, nil
	}
	if !w.Duplicates {
		return w.Rows.Get(w.row(key, start, 0))
	}
	return w.getLast(key, start)
}

func (w *Window) getLast(key []byte, start int64) (value []byte, timestamp int64, ok bool, err error) {
	for e, err := range w.Fetch(key, start, start, true) {
		if err != nil {
			return nil, 0, false, err
		}
		w.value = append(w.value[:0], e.Value...)
		return w.value, e.Timestamp, true, nil
	}
	return nil, 0, false, nil
}

// shown narrows times to those that can be shown; low > high: none.
func (w *Window) shown(from, to int64) (low, high int64) {
	return max(from, w.shownFrom(w.Clock)), min(to, w.Clock.Now())
}

// Fetch gives the windows of a key with from <= start <= to, by start.
func (w *Window) Fetch(key []byte, from, to int64, reverse bool) iter.Seq2[WindowEntry, error] {
	return func(yield func(WindowEntry, error) bool) {
		low, high := w.shown(from, to)
		if low > high {
			return
		}
		ranges := keyRanges(w.segment(low), w.segment(high), key, appendTime(nil, low),
			binary.BigEndian.AppendUint32(appendTime(nil, high), math.MaxUint32))
		user := ranges[0].From[segmentLen : segmentLen+len(key)]
		w.scan(ranges, reverse, func(e *WindowEntry) bool { return string(e.Key) == string(user) }, yield)
	}
}

// FetchRange gives the windows of the keys fromKey <= key < toKey (nil is open) with
// from <= start <= to, by segment, key and start.
func (w *Window) FetchRange(fromKey, toKey []byte, from, to int64, reverse bool) iter.Seq2[WindowEntry, error] {
	return func(yield func(WindowEntry, error) bool) {
		low, high := w.shown(from, to)
		if low > high {
			return
		}
		fromKey, toKey := bytes.Clone(fromKey), bytes.Clone(toKey) // the caller's may change in the loop
		ranges := spanRanges(w.segment(low), w.segment(high), fromKey, toKey,
			binary.BigEndian.AppendUint32(appendTime(nil, high), math.MaxUint32))
		w.scan(ranges, reverse, func(e *WindowEntry) bool {
			return e.Start >= low && e.Start <= high && within(e.Key, fromKey, toKey)
		}, yield)
	}
}

func (w *Window) scan(ranges []Range, reverse bool, shows func(*WindowEntry) bool, yield func(WindowEntry, error) bool) {
	for r, err := range w.Rows.Scan(ranges, reverse) {
		e, err := windowEntry(r, err)
		if err != nil {
			yield(WindowEntry{}, err)
			return
		}
		if shows(&e) && !yield(e, nil) {
			return
		}
	}
}

func windowEntry(r Row, err error) (WindowEntry, error) {
	if err != nil {
		return WindowEntry{}, err
	}
	_, rest, err := SplitSegment(r.Key)
	if err != nil {
		return WindowEntry{}, damaged(err)
	}
	key, start, _, err := DecodeWindow(rest)
	return WindowEntry{key, start, r.Value, r.Timestamp}, damaged(err)
}
