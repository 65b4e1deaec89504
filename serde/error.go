package serde

import (
	"fmt"
	"strings"
)

// Part says which half of a record an [Error] is about.
type Part uint8

const (
	PartKey   Part = iota // the key
	PartValue             // the value
)

// String gives "key" or "value".
func (p Part) String() string {
	switch p {
	case PartKey:
		return "key"
	case PartValue:
		return "value"
	}
	return fmt.Sprintf("part %d", uint8(p))
}

// Error is the error of a serde, with the record it happened to. The framework makes it out
// of what a serde returns; a serde itself knows no topic and returns a plain error.
type Error struct {
	// Serde is the name of the serde.
	Serde string
	// Topic is the topic the record came from or was going to; empty if it had none.
	Topic string
	// Partition is the partition of Topic, -1 if it is not known (yet).
	Partition int32
	// Offset is the offset of the record itself, -1 if it is not known (a record to be written).
	Offset int64
	// Part tells whether the key or the value is meant.
	Part Part
	// Err is what the serde returned.
	Err error
}

// Error names the part, topic, partition, offset and serde, as far as they are known, and
// then the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Part.String())
	if e.Topic != "" {
		b.WriteString(" of " + e.Topic)
		if e.Partition >= 0 {
			fmt.Fprintf(&b, "-%d", e.Partition)
		}
		if e.Offset >= 0 {
			fmt.Fprintf(&b, " at offset %d", e.Offset)
		}
	}
	fmt.Fprintf(&b, ", serde %q: %v", e.Serde, e.Err)
	return b.String()
}

// Unwrap gives the serde's own error.
func (e *Error) Unwrap() error { return e.Err }
