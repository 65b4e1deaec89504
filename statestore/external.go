package statestore

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// StateStore is a store of the user's own: what keeps the committed rows of one store of a
// task, in place of the task's database (see [Spec.Store]). It sits behind the same
// overlay as all others, so only what is committed reaches it, once for each key and
// commit, and everything else (reads of own writes, merged scans, the changelog) is the same.
//
// Get and Range are called by the task's goroutine while another one calls Apply or Sync;
// of these two there is one call at a time. Range is also called just before an Apply, on its
// goroutine, to find what a deleted range has in it. A panic becomes an error. The first error ends
// the task store.
//
// A row's key and value are what docs/format.md describes behind a store's prefix: for a
// key-value store the user's key, and the value, which a timestamped store puts behind 8
// bytes of timestamp.
type StateStore interface {
	// Get gives the value of a row. The slice must not change any more.
	Get(key []byte) (value []byte, ok bool, err error)
	// Range gives the rows with from <= key < to, nil being open at that end, in the order of
	// the keys as bytes, or with reverse from the last to the first: those of the time when the
	// loop begins, whatever is applied during the loop. An error ends it as the last turn. The
	// slices are valid until the loop's next turn.
	Range(from, to []byte, reverse bool) iter.Seq2[Row, error]
	// Apply makes the writes, in their order; a nil value deletes. at says where the store is
	// afterwards: a store that manages offsets keeps it with the rows, in one atomic step, so
	// that a crash leaves both or neither, and what a crash leaves is one of the states that
	// there were. A migration of the values ([Spec.Migrate]) writes through it too, with the point
	// where the store is already. The slices are not Apply's to keep.
	Apply(writes []Row, at StorePoint) error
	// Sync makes what was applied survive a crash of the machine.
	Sync() error
	// Close ends the store. It is called once.
	Close() error
	// ManagesOffsets tells whether the store keeps what Apply says of offsets, and gives it
	// back by Point. For one that does not, a file .checkpoint_<store> is kept in the task's
	// directory, written after each Apply and Sync (so it is called at every commit); what a
	// crash leaves of a torn Apply is made good from the changelog.
	ManagesOffsets() bool
	// Point gives back what the last Apply said; the zero value when there was none. It is
	// called only of a store that manages offsets, at Register.
	Point() (StorePoint, error)
}

// StorePoint says how far a store is. The zero value: nowhere.
type StorePoint struct {
	// Offset is that of the next changelog record, as always.
	Offset Offset
	// ID is the commit whose state the store holds whole; zero while it is restored.
	ID CommitID
}

// MarshalText gives the point as text, for a store to keep: "at 17; commit 3/9".
func (p StorePoint) MarshalText() ([]byte, error) {
	if err := errors.Join(p.Offset.valid(), Progress{ID: p.ID}.validate()); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%v; commit %v", p.Offset, p.ID), nil
}

// UnmarshalText reads what MarshalText gave; no text is the zero value.
func (p *StorePoint) UnmarshalText(text []byte) error {
	*p = StorePoint{}
	if len(text) == 0 {
		return nil
	}
	offset, id, ok := strings.Cut(string(text), "; commit ")
	if !ok {
		return fmt.Errorf("store point %q: no commit in it", text)
	}
	var q StorePoint
	switch offset {
	case Offset{}.String():
	case CleanUnknown().String():
		q.Offset = CleanUnknown()
	default:
		next, err := strconv.ParseInt(strings.TrimPrefix(offset, "at "), 10, 64)
		if err != nil || !strings.HasPrefix(offset, "at ") {
			return fmt.Errorf("store point %q: no offset in it", text)
		}
		q.Offset = At(next)
	}
	if id != (CommitID{}).String() {
		epoch, number, _ := strings.Cut(id, "/")
		e, err1 := strconv.ParseInt(epoch, 10, 64)
		n, err2 := strconv.ParseInt(number, 10, 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("store point %q: no commit in it", text)
		}
		q.ID = CommitID{e, n}
	}
	if err := errors.Join(q.Offset.valid(), Progress{ID: q.ID}.validate()); err != nil {
		return fmt.Errorf("store point %q: %w", text, err)
	}
	*p = q
	return nil
}
