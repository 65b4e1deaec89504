package table

import (
	"bytes"
	"cmp"
	"slices"
)

// Range is a deleted range of a store's keys: from <= key < to; a nil To is open.
type Range struct {
	Store    uint32
	From, To []byte
}

// deleted is what one store knows of deleted ranges: disjoint ones in key order. A deletion
// cuts away what it covers of earlier ones: whatever they hide, it hides too.
type deleted []deletedRange

// rangeOf gives the one of sorted, disjoint ranges that a key is in.
func rangeOf(ranges []Range, store uint32, key []byte) (r Range, ok bool) {
	i, _ := slices.BinarySearchFunc(ranges, key, func(r Range, key []byte) int {
		if r.Store != store {
			return cmp.Compare(r.Store, store)
		}
		if r.To != nil && bytes.Compare(r.To, key) <= 0 {
			return -1
		}
		return 1
	})
	if i == len(ranges) || ranges[i].Store != store || bytes.Compare(ranges[i].From, key) > 0 {
		return Range{}, false
	}
	return ranges[i], true
}

type deletedRange struct {
	from, to []byte
	epoch    uint32 // entries of an earlier epoch are gone
	interval int64  // the one that deleted it
}

// maxDeleted is how many deleted ranges one store may have before the table is swept for
// entries in them, so that those already in the database can be forgotten. It is also how
// many entries a sweep may look at for each range deleted since the last one.
const maxDeleted = 64

// DeleteRange deletes the keys of a store with from <= key < to (nil: open), those that the
// table does not know too. It takes time by the number of ranges deleted, not of entries:
// what is in the range is found to be gone when it is next looked at. A range that contains
// an earlier one takes its place, so deleting from the same start again and again costs
// nothing more. It erases earlier writes, also for the changelog.
func (t *Table) DeleteRange(store uint32, from, to []byte) error {
	if to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	if len(from) > MaxEntry || len(to) > MaxEntry {
		return ErrTooLarge
	}
	size := headerSize + len(from) + len(to)
	if t.dirtyBytes+size > maxDirty {
		return ErrFull
	}
	for int(store) >= len(t.deleted) {
		t.deleted = append(t.deleted, nil)
	}
	t.detachCursors(store, false)
	if t.epoch == maxEpoch || len(t.deleted[store]) > maxDeleted && int(t.epoch)*maxDeleted > t.young.n+t.old.n {
		t.sweep()
	}
	t.epoch++
	r := deletedRange{from: bytes.Clone(from), to: bytes.Clone(to), epoch: t.epoch, interval: t.interval}
	t.deleted[store] = t.deleted[store].with(r)
	t.dirtyBytes += size
	t.dirtyRanges++
	return nil
}

// with puts a range in and takes what it covers out.
func (d deleted) with(r deletedRange) deleted {
	i := d.after(r.from)
	j := i
	for j < len(d) && (r.to == nil || bytes.Compare(d[j].from, r.to) < 0) {
		j++
	}
	pieces := make([]deletedRange, 0, 3)
	if i < j && bytes.Compare(d[i].from, r.from) < 0 {
		left := d[i]
		left.to = r.from
		pieces = append(pieces, left)
	}
	pieces = append(pieces, r)
	if i < j && r.to != nil && (d[j-1].to == nil || bytes.Compare(d[j-1].to, r.to) > 0) {
		right := d[j-1]
		right.from = r.to
		pieces = append(pieces, right)
	}
	return slices.Replace(d, i, j, pieces...)
}

// after gives the place of the first range that does not end at or before key. (Searched by
// hand: a key given to slices.BinarySearchFunc escapes, and then every Get allocates.)
func (d deleted) after(key []byte) int {
	i, j := 0, len(d)
	for i < j {
		h := int(uint(i+j) >> 1)
		if d[h].to != nil && bytes.Compare(d[h].to, key) <= 0 {
			i = h + 1
		} else {
			j = h
		}
	}
	return i
}

func (d deleted) covering(key []byte) *deletedRange {
	if i := d.after(key); i < len(d) && bytes.Compare(d[i].from, key) <= 0 {
		return &d[i]
	}
	return nil
}

// ranges gives the deleted ranges of a store.
func (t *Table) ranges(store uint32) deleted {
	if int(store) >= len(t.deleted) {
		return nil
	}
	return t.deleted[store]
}

// hide tells whether an entry was deleted with a range after it was written.
func (d deleted) hide(e []byte) bool {
	if len(d) == 0 {
		return false
	}
	r := d.covering(entryKey(e))
	return r != nil && r.epoch > meta(e)>>epochShift
}

// gone tells whether an entry was deleted with a range after it was written.
func (t *Table) gone(e []byte) bool {
	return t.ranges(meta(e) & storeMask).hide(e)
}

// settle makes the entry say itself what the deleted ranges say of it.
func (t *Table) settle(e []byte) {
	m := meta(e)
	if m>>epochShift == t.epoch {
		return
	}
	if t.gone(e) {
		m |= flagAbsent | flagErased // if dirty, it keeps its place among the dirty entries
	}
	setMeta(e, m&(1<<epochShift-1)|t.epoch<<epochShift)
}

// deletes tells whether a key that the table does not know was deleted with a range that
// may still be in the database.
func (t *Table) deletes(store uint32, key []byte) bool {
	d := t.ranges(store)
	if len(d) == 0 {
		return false
	}
	r := d.covering(key)
	return r != nil && r.interval > t.applied
}

// sweep settles every entry and begins the epochs anew: t.epoch must become 1 at once.
func (t *Table) sweep() {
	t.detachCursors(0, true)
	for _, g := range [2]*generation{t.old, t.young} {
		for _, slot := range g.slots {
			if slot != 0 {
				e := g.at(uint32(slot))
				t.settle(e)
				setMeta(e, meta(e)&(1<<epochShift-1))
			}
		}
		g.born = 0
	}
	t.epoch = 0
	for _, d := range t.deleted {
		for i := range d {
			d[i].epoch = 0
		}
	}
	t.forgetRanges()
}

// RangesApplied counts how often deleted ranges have come into the database: what an
// iterator of the database opened before shows may be deleted.
func (t *Table) RangesApplied() int { return t.rangesApplied }

// forgetRanges drops the deleted ranges that are in the database and older than every
// entry in the table.
func (t *Table) forgetRanges() {
	if len(t.open) > 0 {
		return // cursors look at them
	}
	born := min(t.young.born, t.old.born)
	for store, d := range t.deleted {
		t.deleted[store] = slices.DeleteFunc(d, func(r deletedRange) bool { return r.interval <= t.applied && r.epoch <= born })
	}
}

// sealRanges copies the ranges deleted in the running interval.
func (t *Table) sealRanges(s *Sealed) {
	for store := range t.deleted {
		s.ranges = t.runningRanges(s.ranges, uint32(store), nil, nil)
	}
}

// runningRanges adds the running interval's deleted ranges of a store that reach into
// from <= key < to. Those that touch become one.
func (t *Table) runningRanges(ranges []Range, store uint32, from, to []byte) []Range {
	for _, r := range t.ranges(store) {
		if r.interval != t.interval || to != nil && bytes.Compare(r.from, to) >= 0 || r.to != nil && bytes.Compare(r.to, from) <= 0 {
			continue
		}
		if n := len(ranges); n > 0 && ranges[n-1].Store == store && bytes.Equal(ranges[n-1].To, r.from) {
			ranges[n-1].To = r.to
			continue
		}
		ranges = append(ranges, Range{Store: store, From: r.from, To: r.to})
	}
	return ranges
}
