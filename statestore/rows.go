package statestore

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// storeRows are the rows of a store under the logic of its kind: what a key-value store has,
// with the keys of the database.
type storeRows struct {
	KeyValue
	// newer: a row that the table does not know, and has not just dropped, is known not to be there.
	newer bool
}

// Get is that of the key-value store, but for rows known not to be in the database.
func (r *storeRows) Get(key []byte) (value []byte, timestamp int64, ok bool, err error) {
	if !r.newer {
		return r.KeyValue.Get(key)
	}
	if err := r.s.usable(); err != nil {
		return nil, 0, false, err
	}
	value, timestamp, a := r.s.table.Get(r.st.number, key)
	switch a {
	case table.Unknown:
		if r.s.table.Drops() != r.st.drops { // in this very call, and perhaps this row
			return r.getFromDatabase(key)
		}
		r.s.table.KnownAbsent()
		return nil, 0, false, nil
	case table.Absent:
		return nil, 0, false, nil
	}
	if !r.st.timestamped() {
		timestamp = 0
	}
	return value, timestamp, true, nil
}

// Put writes a row; one that is not logged goes only into the database.
func (r *storeRows) Put(key, value []byte, timestamp int64, logged bool) error {
	if logged {
		return r.KeyValue.Put(key, value, timestamp)
	}
	if err := r.s.usable(); err != nil {
		return err
	}
	if err := r.s.table.PutUnlogged(r.st.number, key, value, timestamp); err != nil {
		return fmt.Errorf("put into store %q of %s (key of %d bytes, value of %d): %w", r.st.spec.Name, r.s.dir, len(key), len(value), err)
	}
	return nil
}

// Scan opens all ranges before it gives the first row, so that writes in the loop change
// nothing of what it gives.
func (r *storeRows) Scan(ranges []kinds.Range, reverse bool) iter.Seq2[kinds.Row, error] {
	return func(yield func(kinds.Row, error) bool) {
		err := r.scanRanges(ranges, reverse, yield)
		if err != nil {
			yield(kinds.Row{}, err)
		}
	}
}

// scanRanges returns the error that is the last turn of a loop; none when the loop was left.
func (r *storeRows) scanRanges(ranges []kinds.Range, reverse bool, yield func(kinds.Row, error) bool) (err error) {
	cursors := make([]*cursor, 0, len(ranges))
	going := true
	defer func() {
		for _, c := range cursors {
			if cerr := c.close(); going { // who has left the loop does not hear of it
				err = errors.Join(err, cerr)
			}
		}
	}()
	for i := range ranges {
		g := ranges[i]
		if reverse {
			g = ranges[len(ranges)-1-i]
		}
		c, err := r.openScan(g.From, g.To, reverse)
		if err != nil {
			return err
		}
		cursors = append(cursors, c)
		if c.db != nil && r.st.spec.Store != nil { // it sees what is there when it is first moved
			if err := c.moveDatabase(); err != nil {
				return err
			}
		}
	}
	for _, c := range cursors {
		for {
			e, ok, err := c.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if going = yield(kinds.Row{Key: e.Key, Value: e.Value, Timestamp: e.Timestamp}, nil); !going {
				return nil
			}
		}
	}
	return nil
}

// checked is the error of the logic of a kind as the caller sees it: rows that do not decode
// mean a damaged database, which fails.
func (r *storeRows) checked(op string, err error) error {
	if errors.Is(err, kinds.ErrRow) {
		return r.st.rows.Fail(op, fmt.Errorf("%w: store %q: %w", ErrCorrupt, r.st.spec.Name, err))
	}
	return err
}

// entries turns the entries of a kind into those that are given out.
func entries[E, F any](r *storeRows, seq iter.Seq2[E, error], turn func(E) F) iter.Seq2[F, error] {
	return func(yield func(F, error) bool) {
		if err := r.s.usable(); err != nil {
			var none F
			yield(none, err)
			return
		}
		for e, err := range seq {
			if !yield(turn(e), r.checked("scan", err)) {
				return
			}
		}
	}
}
