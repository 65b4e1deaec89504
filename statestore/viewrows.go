package statestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// Row is an entry as it lies in the database: Key is what stands behind the store's
// prefix, Value what docs/format.md says for the store's kind. The slices are valid until
// the loop's next turn.
type Row struct{ Key, Value []byte }

// Rows gives the rows of a store with from <= key < to in key order; nil is open at that
// end. An error ends the loop: it is the second value of the last turn, with an empty row.
func (v *View) Rows(name string, from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		id, ok := v.meta.catalog.ids[name]
		if !ok {
			yield(Row{}, fmt.Errorf("task store %s: there is no store %q", v.dir, name))
			return
		}
		if to != nil && bytes.Compare(from, to) >= 0 {
			return
		}
		lower, upper := (&store{id: id, prefix: storePrefix(id)}).bounds(from, to)
		if err := v.scan(strconv.Quote(name), lower, upper, yield); err != nil {
			yield(Row{}, err)
		}
	}
}

// scan calls yield for each row lower <= key < upper until it returns false.
func (v *View) scan(store string, lower, upper []byte, yield func(Row, error) bool) error {
	if v.db == nil {
		return fmt.Errorf("%w: %s", ErrClosed, v.dir)
	}
	it, err := v.db.NewIter("read store "+store, lower, upper)
	if err != nil {
		return err
	}
	defer it.Close() // its error is that of the last move
	for ok := it.First(); ok; ok = it.Next() {
		if !yield(Row{Key: it.Key()[storePrefixLen:], Value: it.Value()}, nil) {
			return nil
		}
	}
	return it.Err()
}

// StoredEntry is an entry of a store of any kind, as it is in the database: also one that
// reads of the task do not show any more because it has expired. Its slices are valid until
// the loop's next turn.
type StoredEntry struct {
	Key, Value []byte
	// Timestamp, in milliseconds, of the record that wrote it; in timestamped kinds only.
	Timestamp int64
	// Start and End, in milliseconds: of a window (the start only), of a session, of the time
	// in which a version is valid (before End).
	Start, End int64
	// Sequence tells the values of a window apart in a store that retains duplicates.
	Sequence uint32
	// Current: a version without an End.
	Current bool
}

// Entries gives the entries of a store of any kind, in the order of the database: key-value
// stores by key; windows and sessions by segment, key and time; versions that have ended
// before current ones. Only those with from <= key < to are given; nil is open at that end.
// What says only that there was no value at a time is left out. An error ends the loop: it
// is the second value of the last turn, with an empty entry.
func (v *View) Entries(name string, from, to []byte) iter.Seq2[StoredEntry, error] {
	return func(yield func(StoredEntry, error) bool) {
		kind := v.meta.catalog.specs[v.meta.catalog.ids[name]].Kind
		var rowFrom, rowTo []byte
		if kind == KindKeyValue || kind == KindTimestampedKeyValue {
			rowFrom, rowTo = from, to // in the others a time comes first
		}
		for r, err := range v.Rows(name, rowFrom, rowTo) {
			if err != nil {
				yield(StoredEntry{}, err)
				return
			}
			e, shown, err := decodeRow(kind, r)
			if err != nil {
				yield(StoredEntry{}, fmt.Errorf("task store %s: store %q: %w", v.dir, name, err))
				return
			}
			shown = shown && bytes.Compare(e.Key, from) >= 0 && (to == nil || bytes.Compare(e.Key, to) < 0)
			if shown && !yield(e, nil) {
				return
			}
		}
	}
}

// versionRow gives a row of a versioned store without its timestamp in front.
func versionRow(r Row) (kinds.Row, error) {
	if len(r.Value) < 8 {
		return kinds.Row{}, fmt.Errorf("%w: row %x has a value of %d bytes, shorter than a timestamp", ErrCorrupt, r.Key, len(r.Value))
	}
	return kinds.Row{Key: r.Key, Value: r.Value[8:], Timestamp: int64(binary.BigEndian.Uint64(r.Value))}, nil
}

// decodeRow takes a row apart; shown is false for one that says that there is no value. The
// error wraps ErrCorrupt.
func decodeRow(kind Kind, r Row) (e StoredEntry, shown bool, err error) {
	e, shown, err = splitRow(kind, r)
	if err != nil {
		return StoredEntry{}, false, fmt.Errorf("%w: row %x of a %v store: %w", ErrCorrupt, r.Key, kind, err)
	}
	return e, shown, nil
}

func splitRow(kind Kind, r Row) (e StoredEntry, shown bool, err error) {
	e = StoredEntry{Key: r.Key, Value: r.Value}
	if kind == KindTimestampedKeyValue || kind == KindTimestampedWindow || kind == KindVersioned {
		if len(r.Value) < 8 {
			return e, false, fmt.Errorf("its value of %d bytes is shorter than a timestamp", len(r.Value))
		}
		e.Timestamp, e.Value = int64(binary.BigEndian.Uint64(r.Value)), r.Value[8:]
	}
	switch kind {
	case KindKeyValue, KindTimestampedKeyValue:
		return e, true, nil
	case KindWindow, KindTimestampedWindow, KindSession:
		_, rest, err := kinds.SplitSegment(r.Key)
		switch {
		case err != nil:
		case kind == KindSession:
			e.Key, e.Start, e.End, err = kinds.DecodeSession(rest)
		default:
			e.Key, e.Start, e.Sequence, err = kinds.DecodeWindow(rest)
		}
		return e, true, err
	case KindVersioned:
		version, ok, err := kinds.DecodeVersion(kinds.Row{Key: r.Key, Value: e.Value, Timestamp: e.Timestamp})
		return StoredEntry{Key: version.Key, Value: version.Value, Start: version.From, End: version.To, Current: version.Current}, ok, err
	}
	return e, false, fmt.Errorf("this program does not know that kind")
}
