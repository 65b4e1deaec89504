package statestore

import (
	"bytes"
	"iter"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Entry is one entry of a scan. Its slices are valid until the loop's next turn.
type Entry struct {
	Key, Value []byte
	// Timestamp is only set by a timestamped store.
	Timestamp int64
}

// A scan sees the store as it is when the loop begins, all writes included; writes made
// in the loop are allowed and not seen. An error ends it: it is the second value of the
// last turn, with an empty entry. A loop that may be left early must be left by break or
// return, as always with range.

// Range gives the entries with from <= key < to in key order; nil is open at that end.
func (kv *KeyValue) Range(from, to []byte) iter.Seq2[Entry, error] { return kv.scan(from, to, false) }

// ReverseRange gives the entries with from <= key < to from the last key to the first.
func (kv *KeyValue) ReverseRange(from, to []byte) iter.Seq2[Entry, error] {
	return kv.scan(from, to, true)
}

// PrefixScan gives the entries whose keys begin with prefix, in key order.
func (kv *KeyValue) PrefixScan(prefix []byte) iter.Seq2[Entry, error] {
	return kv.scan(prefix, prefixEnd(prefix), false)
}

// All gives all entries in key order.
func (kv *KeyValue) All() iter.Seq2[Entry, error] { return kv.scan(nil, nil, false) }

// ReverseAll gives all entries from the last key to the first.
func (kv *KeyValue) ReverseAll() iter.Seq2[Entry, error] { return kv.scan(nil, nil, true) }

func (kv *KeyValue) scan(from, to []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c, err := kv.openScan(from, to, reverse)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		closed := false
		defer func() {
			if !closed { // break, or a panic in the loop
				_ = c.close()
			}
		}()
		for {
			e, ok, err := c.next()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !ok {
				break
			}
			if !yield(e, nil) || c.alone() && !c.rest(yield) {
				return
			}
		}
		closed = true
		if err := c.close(); err != nil {
			yield(Entry{}, err)
		}
	}
}

// cursor merges the running interval's writes, the sealed ones and the database. For one
// key the first of these that has it counts.
type cursor struct {
	kv      *KeyValue
	reverse bool
	memory  [2]table.Cursor
	ranges  bool // memory has deleted ranges
	db      engine.Iter
	dbValid bool
	dbEntry Entry // the database's current one
	started bool
	// lent: the database's current entry was given out; the iterator must not move before
	// the next call.
	lent bool
}

func (kv *KeyValue) openScan(from, to []byte, reverse bool) (*cursor, error) {
	s := kv.s
	if err := s.usable(); err != nil {
		return nil, err
	}
	if to != nil && bytes.Compare(from, to) >= 0 {
		return &cursor{kv: kv}, nil
	}
	c := &cursor{kv: kv, reverse: reverse}
	lower, upper := kv.st.bounds(from, to)
	from = lower[storePrefixLen:] // the caller's may change before the end of the scan
	if to != nil {
		to = upper[storePrefixLen:]
	}
	it, err := kv.st.rows.NewIter("scan", lower, upper)
	if err != nil {
		return nil, err
	}
	c.db = it
	s.table.Open(&c.memory[0], kv.st.number, from, to, reverse)
	if s.sealed != nil {
		c.memory[1].OpenSealed(s.sealed.writes, kv.st.number, from, to, reverse)
	}
	c.ranges = c.memory[0].HasRanges() || c.memory[1].HasRanges()
	s.scans++
	return c, nil
}

// next gives the next entry that exists; ok is false at the end.
func (c *cursor) next() (e Entry, ok bool, err error) {
	if c.db == nil {
		return Entry{}, false, nil
	}
	if !c.started || c.lent {
		if err := c.moveDatabase(); err != nil {
			return Entry{}, false, err
		}
	}
	for {
		source := c.smallest()
		if source < 0 {
			return Entry{}, false, nil
		}
		if source == len(c.memory) {
			c.lent = true
			return c.dbEntry, true, nil
		}
		w := *c.memory[source].Write()
		if err := c.skip(w.Key); err != nil {
			return Entry{}, false, err
		}
		if _, deleted := c.deletedAbove(source, w.Key); w.Value != nil && !deleted {
			e := Entry{Key: w.Key, Value: w.Value}
			if c.kv.st.timestamped() {
				e.Timestamp = w.Timestamp
			}
			return e, true, nil
		}
	}
}

// alone tells whether only the database has entries left, and its current one was given out.
func (c *cursor) alone() bool {
	return c.lent && !c.ranges && !c.memory[0].Valid() && !c.memory[1].Valid()
}

// rest is the loop of a scan when the database is alone: there is nothing to compare. It
// returns false when the loop was left or an error ended it.
func (c *cursor) rest(yield func(Entry, error) bool) bool {
	if w, ok := c.db.(engine.Walker); ok {
		return c.walk(w, yield)
	}
	for {
		if err := c.moveDatabase(); err != nil {
			yield(Entry{}, err)
			return false
		}
		if !c.dbValid {
			return true
		}
		if !yield(c.dbEntry, nil) {
			return false
		}
	}
}

// walk is rest for an engine that can take many moves at once.
func (c *cursor) walk(w engine.Walker, yield func(Entry, error) bool) bool {
	var e Entry
	var bad error
	c.lent, c.dbValid = false, false
	done := w.Walk(c.reverse, func(key, value []byte) bool {
		e.Key = key[storePrefixLen:]
		if e.Value, e.Timestamp, bad = c.kv.st.split(value); bad != nil {
			return false
		}
		return yield(e, nil)
	})
	if bad != nil {
		bad = c.kv.st.rows.Fail("scan", bad)
	} else {
		bad = c.db.Err()
	}
	if bad != nil {
		yield(Entry{}, bad)
	}
	return done && bad == nil
}

// smallest gives the first source of those that have the next key in the order of the
// scan; the database is the last source, -1 = none.
func (c *cursor) smallest() (source int) {
	var key []byte
	source = -1
	better := func(k []byte) bool {
		if source < 0 {
			return true
		}
		if c.reverse {
			return bytes.Compare(k, key) > 0
		}
		return bytes.Compare(k, key) < 0
	}
	for i := range c.memory {
		if m := &c.memory[i]; m.Valid() && better(m.Write().Key) {
			key, source = m.Write().Key, i
		}
	}
	if c.dbValid && better(c.dbEntry.Key) {
		source = len(c.memory)
	}
	return source
}

// skip moves every source that stands at key past it.
func (c *cursor) skip(key []byte) error {
	for i := range c.memory {
		if m := &c.memory[i]; m.Valid() && bytes.Equal(m.Write().Key, key) {
			m.Next()
		}
	}
	if c.dbValid && bytes.Equal(c.dbEntry.Key, key) {
		return c.moveDatabase()
	}
	return nil
}

// deletedAbove gives the range that hides the key of a source, deleted in an interval later
// than the source.
func (c *cursor) deletedAbove(source int, key []byte) (r table.Range, ok bool) {
	if !c.ranges {
		return r, false
	}
	for i := range source {
		if r, ok := c.memory[i].Deletes(key); ok {
			return r, true
		}
	}
	return r, false
}

// moveDatabase moves the iterator to its next row that is in no range deleted since.
func (c *cursor) moveDatabase() error {
	c.stepDatabase()
	for c.ranges && c.dbValid {
		r, deleted := c.deletedAbove(len(c.memory), c.db.Key()[storePrefixLen:])
		if !deleted {
			break
		}
		if c.reverse {
			c.dbValid = c.db.Prev()
			continue
		}
		_, end := c.kv.st.bounds(nil, r.To)
		c.dbValid = c.db.SeekGE(end)
	}
	if !c.dbValid {
		return c.db.Err()
	}
	var err error
	c.dbEntry.Key = c.db.Key()[storePrefixLen:]
	if c.dbEntry.Value, c.dbEntry.Timestamp, err = c.kv.st.split(c.db.Value()); err != nil {
		return c.kv.st.rows.Fail("scan", err)
	}
	return nil
}

func (c *cursor) stepDatabase() {
	first := !c.started
	c.started, c.lent = true, false
	switch {
	case first && c.reverse:
		c.dbValid = c.db.Last()
	case first:
		c.dbValid = c.db.First()
	case c.reverse:
		c.dbValid = c.db.Prev()
	default:
		c.dbValid = c.db.Next()
	}
}

func (c *cursor) close() error {
	if c.db == nil {
		return nil
	}
	it := c.db
	c.db = nil
	for i := range c.memory {
		c.memory[i].Close()
	}
	c.kv.s.scans--
	return it.Close()
}
