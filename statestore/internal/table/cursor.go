package table

import (
	"bytes"
	"slices"

	"github.com/tidwall/btree"
)

// Cursor goes over the writes of one store with from <= key < to, in key order or against
// it: those of the running interval as they were when it was opened, or those of a
// [Sealed]. The zero value is over nothing. While a cursor over the running interval is
// open, the table evicts nothing and changes no bytes that were given out.
type Cursor struct {
	store    uint32
	from, to []byte
	reverse  bool
	ranges   []Range

	// Either an index,
	t       *Table
	index   *index
	tree    *btree.BTreeG[place]
	it      btree.IterG[place]
	deleted deleted
	// or sorted writes.
	sealed   *Sealed
	at, left int

	w     Write
	valid bool
}

// Open begins a cursor over the running interval and moves it to its first write; a nil
// bound is open. It must be closed, and its place in memory must stay until then. from and
// to must not change until then either.
func (t *Table) Open(c *Cursor, store uint32, from, to []byte, reverse bool) {
	*c = Cursor{store: store, from: from, to: to, reverse: reverse}
	if t.DirtyCount() == 0 {
		return
	}
	if t.dirtyRanges > 0 {
		c.ranges = t.runningRanges(nil, store, from, to)
	}
	o := t.orderOf(store)
	if o.index == nil {
		if s := t.collect(store, from, to); s != nil {
			c.openSealed(s)
		}
		return
	}
	t.open = append(t.open, c)
	c.t, c.index, c.deleted = t, o.index, t.ranges(store)
	c.tree = c.index.read(&c.it)
	c.settle(c.first())
}

// OpenSealed begins a cursor over sealed writes and moves it to its first one.
func (c *Cursor) OpenSealed(s *Sealed, store uint32, from, to []byte, reverse bool) {
	*c = Cursor{store: store, from: from, to: to, reverse: reverse, ranges: s.ranges}
	c.openSealed(s)
}

func (c *Cursor) openSealed(s *Sealed) {
	s.Sort()
	i, j := s.Range(c.store, c.from, c.to)
	c.sealed, c.at, c.left = s, i, j-i
	if c.reverse {
		c.at = j - 1
	}
	c.load()
}

func (c *Cursor) load() {
	if c.valid = c.left > 0; c.valid {
		c.w = c.sealed.At(c.at)
	}
}

// Valid tells whether the cursor stands on a write.
func (c *Cursor) Valid() bool { return c.valid }

// Write gives the write on which the cursor stands; its bytes do not change before Close.
// Stamped is not set.
func (c *Cursor) Write() *Write { return &c.w }

// Next moves to the next write in the cursor's direction.
func (c *Cursor) Next() {
	switch {
	case c.index != nil:
		c.settle(c.step())
	case c.sealed != nil:
		c.left--
		if c.at++; c.reverse {
			c.at -= 2
		}
		c.load()
	}
}

// HasRanges tells whether there are ranges deleted in the interval.
func (c *Cursor) HasRanges() bool { return len(c.ranges) > 0 }

// Deletes gives the range deleted in the interval that has a key in it. What the interval
// wrote there was written after.
func (c *Cursor) Deletes(key []byte) (r Range, ok bool) { return rangeOf(c.ranges, c.store, key) }

// first moves the iterator to the first entry, which may be behind the end.
func (c *Cursor) first() bool {
	switch {
	case !c.reverse:
		return c.index.seek(&c.it, c.from)
	case c.to == nil || !c.index.seek(&c.it, c.to):
		return c.it.Last()
	}
	return c.it.Prev()
}

func (c *Cursor) step() bool {
	if c.reverse {
		return c.it.Prev()
	}
	return c.it.Next()
}

// settle moves on from the entry the iterator is on, if it is on one, to one to show.
func (c *Cursor) settle(on bool) {
	for ; on; on = c.step() {
		e := c.index.entry(c.it.Item())
		key := entryKey(e)
		if !within(key, c.from, c.to) {
			break
		}
		if meta(e)&flagErased != 0 || c.deleted.hide(e) {
			continue
		}
		c.w = Write{Store: c.store, Key: key, Value: entryValue(e), Timestamp: entryTime(e), Unlogged: meta(e)&flagUnlogged != 0}
		c.valid = true
		return
	}
	c.valid = false
}

// detach copies what the cursor has yet to show, because its entries are about to change.
func (c *Cursor) detach() {
	s, w, valid := newSealed(), c.w, c.valid
	for c.Next(); c.valid; c.Next() {
		s.addWrite(&c.w)
	}
	c.endRead()
	if c.reverse {
		slices.Reverse(s.index)
	}
	s.once.Do(func() {}) // it is sorted
	c.sealed, c.at, c.left = s, -1, len(s.index)+1
	if c.reverse {
		c.at = len(s.index)
	}
	c.w, c.valid = w, valid
}

func (c *Cursor) endRead() {
	if c.index != nil {
		c.index.endRead(c.tree)
	}
	c.index, c.tree, c.it, c.deleted = nil, nil, btree.IterG[place]{}, nil
}

// Close ends a cursor; the zero value may be closed, and one closed already.
func (c *Cursor) Close() {
	c.endRead()
	if c.t != nil {
		c.t.open = slices.DeleteFunc(c.t.open, func(o *Cursor) bool { return o == c })
	}
	*c = Cursor{}
}

// detachCursors makes the open cursors over a store's running interval, or over all, live
// from copies.
func (t *Table) detachCursors(store uint32, all bool) {
	for _, c := range t.open {
		if c.index != nil && (all || c.store == store) {
			c.detach()
		}
	}
}

// collect copies the writes of one store since the last Seal with from <= key < to. It is
// nil when there are none.
func (t *Table) collect(store uint32, from, to []byte) *Sealed {
	var s *Sealed
	for _, g := range [2]*generation{t.old, t.young} {
		for _, ref := range g.dirty {
			e := g.at(ref)
			m := meta(e)
			if m&(flagDirty|flagErased|storeMask) != flagDirty|store || !within(entryKey(e), from, to) || t.gone(e) {
				continue
			}
			if s == nil {
				s = newSealed()
			}
			s.add(m, e)
		}
	}
	return s
}

func within(key, from, to []byte) bool {
	return bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0)
}
