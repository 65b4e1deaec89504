package statestore

import (
	"cmp"
	"fmt"
)

// Offset says how far a store has followed its changelog partition: nothing recorded
// (the zero value), known to be clean but not how far, or at the offset of the next
// record. Offsets are comparable with ==.
type Offset struct {
	state offsetState
	next  int64
}

type offsetState uint8

const (
	offsetAbsent offsetState = iota
	offsetUnknown
	offsetAt
)

// At is the offset of the next record to apply, as Kafka counts: 0 = none applied yet.
// A negative one is refused where it would be written.
func At(next int64) Offset { return Offset{offsetAt, next} }

// CleanUnknown says that the store was closed cleanly and that its offset is not known
// (the -4 of Kafka Streams' checkpoint files).
func CleanUnknown() Offset { return Offset{state: offsetUnknown} }

// Next gives the offset of the next record to apply, and false when it is not known.
func (o Offset) Next() (next int64, ok bool) { return o.next, o.state == offsetAt }

// IsAbsent tells whether nothing was ever recorded.
func (o Offset) IsAbsent() bool { return o.state == offsetAbsent }

// IsUnknown tells whether the store is clean, at an offset that is not known.
func (o Offset) IsUnknown() bool { return o.state == offsetUnknown }

// String gives "absent", "clean, unknown" or "at N".
func (o Offset) String() string {
	switch o.state {
	case offsetAbsent:
		return "absent"
	case offsetUnknown:
		return "clean, unknown"
	}
	return fmt.Sprintf("at %d", o.next)
}

// valid refuses what must not be written.
func (o Offset) valid() error {
	if o.state == offsetAt && o.next < 0 {
		return fmt.Errorf("negative offset %d", o.next)
	}
	return nil
}

// CommitID names one commit of a task: who wrote it (the writer epoch) and which of the
// writer's commits it is. The zero value means none.
type CommitID struct {
	Epoch, Number int64
}

// IsZero tells whether c is no commit.
func (c CommitID) IsZero() bool { return c == CommitID{} }

// Compare orders by epoch, then by number: -1, 0 or 1.
func (c CommitID) Compare(d CommitID) int {
	return cmp.Or(cmp.Compare(c.Epoch, d.Epoch), cmp.Compare(c.Number, d.Number))
}

// String gives "epoch/number", or "none".
func (c CommitID) String() string {
	if c.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d/%d", c.Epoch, c.Number)
}
