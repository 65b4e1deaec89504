package streams

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/serde"
)

// changeSerde writes the changes of a grouped table into its repartition topic, in the form of
// Kafka Streams: the values, and a last byte that says which.
type changeSerde[V any] struct{ value serde.Serde[V] }

// The last bytes. Where there are both values, the length of the new one comes first, as a
// zigzag varint.
const (
	onlyOld = 0
	onlyNew = 1
	both    = 2
	// withLatest is added by a newer form, in which a byte before the last one tells whether the
	// change is its key's latest. It is read, not written, as by Kafka Streams.
	withLatest = 3
)

// Name is that of the values' serde in a form of its own.
func (s changeSerde[V]) Name() string { return "change:" + s.value.Name() }

// Append writes a change.
func (s changeSerde[V]) Append(dst []byte, c change[V]) (out []byte, err error) {
	switch {
	case c.hasNew && c.hasOld:
		n, err := s.value.Append([]byte{}, c.new) // its length stands before it
		if err != nil {
			return dst, err
		}
		dst = append(binary.AppendVarint(dst, int64(len(n))), n...)
		dst, err = s.value.Append(dst, c.old)
		return append(dst, both), err
	case c.hasNew:
		dst, err = s.value.Append(dst, c.new)
		return append(dst, onlyNew), err
	case c.hasOld:
		dst, err = s.value.Append(dst, c.old)
		return append(dst, onlyOld), err
	}
	return dst, errors.New("a change has neither a new nor an old value")
}

// Decode reads a change.
func (s changeSerde[V]) Decode(b []byte) (c change[V], err error) {
	if len(b) == 0 {
		return c, errors.New("a change of no bytes")
	}
	flag, b := b[len(b)-1], b[:len(b)-1]
	if flag >= withLatest && len(b) > 0 {
		flag, b = flag-withLatest, b[:len(b)-1]
	}
	switch flag {
	case onlyOld:
		c.hasOld = true
		c.old, err = s.value.Decode(b)
		return c, err
	case onlyNew:
		c.hasNew = true
		c.new, err = s.value.Decode(b)
		return c, err
	case both:
	default:
		return c, fmt.Errorf("a change of the unknown form %d", flag)
	}
	n, used := binary.Varint(b)
	if used <= 0 || n < 0 || n > int64(len(b)-used) {
		return c, errors.New("a change whose new value is longer than it is")
	}
	b = b[used:]
	c.hasNew, c.hasOld = true, true
	if c.new, err = s.value.Decode(b[:n]); err != nil {
		return c, err
	}
	c.old, err = s.value.Decode(b[n:])
	return c, err
}
