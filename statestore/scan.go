package statestore

import (
	"bytes"
	"iter"

	"github.com/cockroachdb/pebble/v2"
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
			if !yield(e, nil) {
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
	memory  [2]memoryCursor
	db      *pebble.Iterator
	dbValid bool
	dbEntry Entry // the database's current one
	started bool
	// lent: the database's current entry was given out; the iterator must not move before
	// the next call.
	lent bool
}

type memoryCursor struct {
	writes *table.Sealed
	at     int
	left   int
	w      table.Write
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
	c.memory[0].open(s.table.View(kv.st.number, from, to), kv.st.number, from, to, reverse)
	if s.sealed != nil {
		c.memory[1].open(s.sealed.writes, kv.st.number, from, to, reverse)
	}
	lower, upper := kv.st.bounds(from, to)
	err := s.db.Read("scan", func(db *pebble.DB) (err error) {
		c.db, err = db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.scans++
	return c, nil
}

func (m *memoryCursor) open(writes *table.Sealed, store uint32, from, to []byte, reverse bool) {
	if writes == nil {
		return
	}
	writes.Sort()
	i, j := writes.Range(store, from, to)
	m.writes, m.at, m.left = writes, i, j-i
	if reverse {
		m.at = j - 1
	}
	m.load()
}

func (m *memoryCursor) load() {
	if m.left > 0 {
		m.w = m.writes.At(m.at)
	}
}

func (m *memoryCursor) advance(reverse bool) {
	m.left--
	if reverse {
		m.at--
	} else {
		m.at++
	}
	m.load()
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
		w := c.memory[source].w
		if err := c.skip(w.Key); err != nil {
			return Entry{}, false, err
		}
		if w.Value != nil {
			e := Entry{Key: w.Key, Value: w.Value}
			if c.kv.st.timestamped() {
				e.Timestamp = w.Timestamp
			}
			return e, true, nil
		}
	}
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
		if m := &c.memory[i]; m.left > 0 && better(m.w.Key) {
			key, source = m.w.Key, i
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
		if m := &c.memory[i]; m.left > 0 && bytes.Equal(m.w.Key, key) {
			m.advance(c.reverse)
		}
	}
	if c.dbValid && bytes.Equal(c.dbEntry.Key, key) {
		return c.moveDatabase()
	}
	return nil
}

func (c *cursor) moveDatabase() error {
	first := !c.started
	c.started, c.lent = true, false
	return c.kv.s.db.Read("scan", func(*pebble.DB) error {
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
		if !c.dbValid {
			return c.db.Error()
		}
		stored, err := c.db.ValueAndErr()
		if err != nil {
			return err
		}
		c.dbEntry.Key = c.db.Key()[storePrefixLen:]
		c.dbEntry.Value, c.dbEntry.Timestamp, err = c.kv.st.split(stored)
		return err
	})
}

func (c *cursor) close() error {
	if c.db == nil {
		return nil
	}
	it := c.db
	c.db = nil
	c.kv.s.scans--
	return c.kv.s.db.EndRead("scan", it)
}
