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
	once  *sync.Once
}

type sealedEntry struct {
	prefix     uint64 // 8 bytes of the key behind what all keys of the store share
	off        int
	klen, vlen uint32
	store      uint32
	absent     bool
}

// Write is one write of a [Sealed].
type Write struct {
	Store     uint32
	Key       []byte
	Value     []byte // nil = deleted
	Timestamp int64
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
	s.buf, s.index = s.buf[:0], s.index[:0]
	s.index = slices.Grow(s.index, t.dirtyCount)
	s.buf = slices.Grow(s.buf, t.dirtyBytes-(headerSize-8)*t.dirtyCount)
	for _, g := range [2]*generation{t.old, t.young} {
		for _, ref := range g.dirty {
			e := g.at(ref)
			if m := meta(e); m&flagDirty != 0 {
				setMeta(e, m&^flagDirty)
				s.add(m, e)
			}
		}
		g.dirty = g.dirty[:0]
	}
	t.dirtyBytes, t.dirtyCount = 0, 0
	t.interval++
	return s
}

// Applied says that everything sealed so far is in the database.
func (t *Table) Applied() { t.applied = t.interval - 1 }

func (s *Sealed) add(m uint32, e []byte) {
	key, value := entryKey(e), entryValue(e)
	s.index = append(s.index, sealedEntry{off: len(s.buf), klen: uint32(len(key)), vlen: uint32(len(value)),
		store: m & storeMask, absent: m&flagAbsent != 0})
	s.buf = append(s.buf, key...)
	s.buf = binary.BigEndian.AppendUint64(s.buf, uint64(entryTime(e)))
	s.buf = append(s.buf, value...)
}

// Len is the number of writes.
func (s *Sealed) Len() int { return len(s.index) }

// Bytes is the length of all keys and values.
func (s *Sealed) Bytes() int { return len(s.buf) - 8*len(s.index) }

// At gives write i in the order of store and key; [Sealed.Sort] must have been called.
func (s *Sealed) At(i int) Write {
	x := &s.index[i]
	b := s.buf[x.off : x.off+int(x.klen)+8+int(x.vlen)]
	k := int(x.klen)
	w := Write{Store: x.store, Key: b[:k:k], Timestamp: int64(binary.BigEndian.Uint64(b[k:])), Stamped: b[k:len(b):len(b)]}
	if !x.absent {
		w.Value = w.Stamped[8:]
	}
	return w
}

func (s *Sealed) key(x *sealedEntry) []byte { return s.buf[x.off : x.off+int(x.klen)] }

// Sort orders the writes by store and key. It may be called from several goroutines.
func (s *Sealed) Sort() {
	s.once.Do(func() {
		s.setPrefixes()
		slices.SortFunc(s.index, func(a, b sealedEntry) int {
			if a.store != b.store {
				return cmp.Compare(a.store, b.store)
			}
			if a.prefix != b.prefix {
				return cmp.Compare(a.prefix, b.prefix)
			}
			return bytes.Compare(s.key(&a), s.key(&b))
		})
	})
}

// setPrefixes takes the 8 bytes behind what the keys of a store have in common: keys like
// "order-0000001234" differ late, and comparing them whole is what sorting costs.
func (s *Sealed) setPrefixes() {
	type shared struct {
		first *sealedEntry
		n     int
	}
	var stores []shared
	for i := range s.index {
		x := &s.index[i]
		for int(x.store) >= len(stores) {
			stores = append(stores, shared{})
		}
		c := &stores[x.store]
		if c.first == nil {
			c.first, c.n = x, int(x.klen)
			continue
		}
		c.n = commonPrefix(s.key(c.first)[:c.n], s.key(x))
	}
	for i := range s.index {
		x := &s.index[i]
		x.prefix = prefix(s.key(x)[stores[x.store].n:])
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func prefix(k []byte) uint64 {
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
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
