package main

import (
	"encoding/binary"
	"strconv"
)

// counts is the state: a count for each key, and which were changed since the last commit.
type counts struct {
	cells   []map[string]*cell // by partition
	changed []*cell
}

type cell struct {
	key       []byte
	n         int64
	timestamp int64 // of the record that changed it last, in milliseconds
	partition int32
	dirty     bool
}

// add counts a record and gives the new count. The key is copied.
func (c *counts) add(partition int32, key []byte, timestamp int64) int64 {
	for int(partition) >= len(c.cells) {
		c.cells = append(c.cells, map[string]*cell{})
	}
	x := c.cells[partition][string(key)]
	if x == nil {
		x = &cell{key: append([]byte(nil), key...), partition: partition}
		c.cells[partition][string(x.key)] = x
	}
	x.n++
	x.timestamp = timestamp
	if !x.dirty {
		x.dirty = true
		c.changed = append(c.changed, x)
	}
	return x.n
}

// takeChanged calls f for each changed cell and forgets that it was changed.
func (c *counts) takeChanged(f func(*cell) error) error {
	for _, x := range c.changed {
		x.dirty = false
		if err := f(x); err != nil {
			return err
		}
	}
	c.changed = c.changed[:0]
	return nil
}

// text is the form of a count in the output topic.
func text(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// value is its form in the changelog.
func (x *cell) value() []byte { return binary.BigEndian.AppendUint64(nil, uint64(x.n)) }
