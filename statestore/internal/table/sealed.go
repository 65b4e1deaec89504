package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// Sealed is one interval's writes: a copy, so that the table can go on. It never
// changes; sorting builds an index beside it, once, by whoever needs it first.
type Sealed struct {
	buf   []byte // per entry: key, 8 bytes big-endian timestamp, value
	index []sealedEntry
	count int // of index, which Sort replaces while others ask
	// ranges are the table's own slices, which never change.
	ranges []Range
	once   *sync.Once
}

type sealedEntry struct {
	off        int
	klen, vlen uint32
	store      uint32
	absent     bool
	unlogged   bool
}

// Write is one write of a [Sealed].
type Write struct {
	Store     uint32
	Key       []byte
	Value     []byte // nil = deleted
	Timestamp int64
	// Unlogged: it does not go into the changelog.
	Unlogged bool
	// Stamped is the timestamp as 8 bytes, big-endian, followed by the value.
	Stamped []byte
}

func newSealed() *Sealed { return &Sealed{once: new(sync.Once)} }

// Seal copies the writes since the last Seal, makes their entries clean in the table (but
// not droppable before [Table.Applied]) and begins the next interval. into may be a
// Sealed that nobody uses any more, or nil.
func (t *Table) Seal(into *Sealed) *Sealed {
	s := into
	if s == nil {
		s = newSealed()
	}
	s.once = new(sync.Once)
	s.buf, s.index, s.count = s.buf[:0], s.index[:0], 0
	clear(s.ranges)
	s.ranges = s.ranges[:0]
	s.index = slices.Grow(s.index, t.dirtyCount)
	s.buf = slices.Grow(s.buf, t.dirtyBytes-(headerSize-8)*t.dirtyCount)
	if t.dirtyRanges > 0 {
		t.sealRanges(s)
		t.rangesSealed = true
	}
	for _, g := range [2]*generation{t.old, t.young} {
		for _, ref := range g.dirty {
			e := g.at(ref)
			m := meta(e)
			if m&flagDirty == 0 {
				continue
			}
			setMeta(e, m&^flagDirty)
			if m&flagErased == 0 && (t.epoch == 0 || !t.gone(e)) {
				s.add(m, e)
			}
		}
		g.dirty = g.dirty[:0]
	}
	t.sealedBytes += t.dirtyBytes
	t.dirtyBytes, t.dirtyCount, t.dirtyRanges = 0, 0, 0
	t.sealOrders()
	t.publish()
	t.interval++
	return s
}

// Applied says that everything sealed so far is in the database.
func (t *Table) Applied() {
	t.applied, t.sealedBytes = t.interval-1, 0
	if t.rangesSealed {
		t.rangesSealed = false
		t.rangesApplied++
	}
	if t.epoch > 0 {
		t.forgetRanges()
	}
	if t.shrinking {
		t.fit()
	}
	t.publish()
}

func (s *Sealed) add(m uint32, e []byte) {
	key, value := entryKey(e), entryValue(e)
	s.count++
	s.index = append(s.index, sealedEntry{off: len(s.buf), klen: uint32(len(key)), vlen: uint32(len(value)),
		store: m & storeMask, absent: m&flagAbsent != 0, unlogged: m&flagUnlogged != 0})
	s.buf = append(s.buf, key...)
	s.buf = binary.BigEndian.AppendUint64(s.buf, uint64(entryTime(e)))
	s.buf = append(s.buf, value...)
}

// Ranges are the ranges deleted in the interval, by store and key, disjoint. They come
// before the writes: a write of a key in one of them was made after the deletion.
func (s *Sealed) Ranges() []Range { return s.ranges }

// addWrite is add for a write that has no entry.
func (s *Sealed) addWrite(w *Write) {
	s.count++
	s.index = append(s.index, sealedEntry{off: len(s.buf), klen: uint32(len(w.Key)), vlen: uint32(len(w.Value)),
		store: w.Store, absent: w.Value == nil, unlogged: w.Unlogged})
	s.buf = append(s.buf, w.Key...)
	s.buf = binary.BigEndian.AppendUint64(s.buf, uint64(w.Timestamp))
	s.buf = append(s.buf, w.Value...)
}

// Len is the number of writes.
func (s *Sealed) Len() int { return s.count }

// Bytes is the length of all keys and values.
func (s *Sealed) Bytes() int { return len(s.buf) - 8*s.count }

// At gives write i in the order of store and key; [Sealed.Sort] must have been called.
func (s *Sealed) At(i int) Write {
	x := &s.index[i]
	b := s.buf[x.off : x.off+int(x.klen)+8+int(x.vlen)]
	k := int(x.klen)
	w := Write{Store: x.store, Key: b[:k:k], Timestamp: int64(binary.BigEndian.Uint64(b[k:])), Unlogged: x.unlogged, Stamped: b[k:len(b):len(b)]}
	if !x.absent {
		w.Value = w.Stamped[8:]
	}
	return w
}

func (s *Sealed) key(x *sealedEntry) []byte { return s.buf[x.off : x.off+int(x.klen)] }

// Sort orders the writes by store and key. It may be called from several goroutines.
func (s *Sealed) Sort() {
	s.once.Do(func() {
		if len(s.index) > 1 {
			s.index = sortWrites(s)
		}
	})
}

// Range gives the places [i, j) of the writes of a store with from <= key < to in sorted
// order; a nil bound is open. Sort must have been called.
func (s *Sealed) Range(store uint32, from, to []byte) (i, j int) {
	i, _ = slices.BinarySearchFunc(s.index, from, func(x sealedEntry, from []byte) int {
		if x.store != store {
			return cmp.Compare(x.store, store)
		}
		return bytes.Compare(s.key(&x), from)
	})
	j, _ = slices.BinarySearchFunc(s.index, to, func(x sealedEntry, to []byte) int {
		if x.store != store {
			return cmp.Compare(x.store, store)
		}
		if to == nil {
			return -1
		}
		return bytes.Compare(s.key(&x), to)
	})
	return i, max(i, j)
}
