package kinds

import (
	"errors"
	"iter"
)

// ErrExpired is returned by a put of a window or session whose segment has expired.
var ErrExpired = errors.New("older than the store's retention")

// ErrRow marks the error of a row, as it was read, that does not decode.
var ErrRow = errors.New("damaged row")

// Rows are the rows of one store, as its owner sees them: with all writes so far.
type Rows interface {
	// Get gives a row. The value is valid until the next call.
	Get(key []byte) (value []byte, timestamp int64, ok bool, err error)
	// Put writes a row, nil deletes it. Key and value are copied; they must not be slices that
	// Get gave. With logged the write goes into the changelog; the last write of a key counts in this too.
	Put(key, value []byte, timestamp int64, logged bool) error
	// Scan gives the rows in the ranges, which are disjoint and in order, or with reverse from
	// the last row of the last range to the first. It sees the rows as they are when the loop
	// begins. An error is its last turn. A row is valid until the next turn.
	Scan(ranges []Range, reverse bool) iter.Seq2[Row, error]
}

// Row is one row of a scan.
type Row struct {
	Key, Value []byte
	Timestamp  int64
}

// Range is the keys From <= key < To; a nil To is open.
type Range struct {
	From, To []byte
}

// Clock is what a store knows of time, beside its rows. The zero value is that of an empty store.
type Clock struct {
	// Known: something was written; Time is then the largest time ever written, in milliseconds.
	Known bool
	Time  int64
	// Sequence is the number given last in a store that retains duplicates.
	Sequence uint32
}

// Now is the store's stream time, -1 for none.
func (c *Clock) Now() int64 {
	if !c.Known {
		return -1
	}
	return c.Time
}

// Advance moves the stream time to t, unless it is there already.
func (c *Clock) Advance(t int64) {
	if !c.Known || t > c.Time {
		c.Known, c.Time = true, t
	}
}
