package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// sortKey stands for a write while they are sorted.
type sortKey struct {
	prefix uint64 // 8 bytes of the key behind what all keys of the store share
	store  uint32
	at     uint32 // in the index
}

// sorter is memory for sorting, kept for the next time.
type sorter struct {
	keys, other []sortKey
	index       []sealedEntry
}

var sorters = sync.Pool{New: func() any { return new(sorter) }}

// radixFrom is from how many writes on sorting by bytes is faster than by comparing.
const radixFrom = 200

// sortWrites gives the index of a Sealed in the order of store and key; the memory of the
// old one is used again.
func sortWrites(s *Sealed) []sealedEntry {
	w := sorters.Get().(*sorter)
	defer sorters.Put(w)
	w.keys = slices.Grow(w.keys[:0], len(s.index))[:len(s.index)]
	whole := s.sortKeys(w.keys)
	if len(w.keys) >= radixFrom {
		w.other = slices.Grow(w.other[:0], len(w.keys))[:len(w.keys)]
		w.radix()
	} else {
		whole = false
		slices.SortFunc(w.keys, func(a, b sortKey) int {
			return cmp.Or(cmp.Compare(a.store, b.store), cmp.Compare(a.prefix, b.prefix))
		})
	}
	if !whole { // else the same prefix is the same key, and radix keeps the order in which they came
		s.sortEqual(w.keys)
	}
	w.index = slices.Grow(w.index[:0], len(s.index))
	for _, k := range w.keys {
		w.index = append(w.index, s.index[k.at])
	}
	sorted := w.index
	w.index = s.index
	return sorted
}

// sortKeys takes the 8 bytes behind what the keys of a store have in common: keys like
// "order-0000001234" differ late, and comparing them whole is what sorting costs. It tells whether these bytes
// are all that the keys of a store differ in.
func (s *Sealed) sortKeys(keys []sortKey) (whole bool) {
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
	whole = true
	for i := range s.index {
		x := &s.index[i]
		c := &stores[x.store]
		whole = whole && x.klen == c.first.klen && int(x.klen) <= c.n+8
		keys[i] = sortKey{prefix: prefix(s.key(x)[c.n:]), store: x.store, at: uint32(i)}
	}
	return whole
}

// sortEqual sorts those whose first bytes are the same by their whole keys; the same key, which only a
// [Run] has more than once, in the order in which it came.
func (s *Sealed) sortEqual(keys []sortKey) {
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j].prefix == keys[i].prefix && keys[j].store == keys[i].store {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(keys[i:j], func(a, b sortKey) int {
				return cmp.Or(bytes.Compare(s.key(&s.index[a.at]), s.key(&s.index[b.at])), cmp.Compare(a.at, b.at))
			})
		}
		i = j
	}
}

// radix sorts by one byte after the other, from the last one; bytes that are the same
// everywhere need no pass.
func (w *sorter) radix() {
	first := w.keys[0]
	var prefixes uint64
	var stores uint32
	for i := range w.keys {
		prefixes |= w.keys[i].prefix ^ first.prefix
		stores |= w.keys[i].store ^ first.store
	}
	for shift := 0; shift < 64; shift += 8 {
		if prefixes>>shift&0xff != 0 {
			w.pass(func(k *sortKey) byte { return byte(k.prefix >> shift) })
		}
	}
	for shift := 0; shift < 32; shift += 8 {
		if stores>>shift&0xff != 0 {
			w.pass(func(k *sortKey) byte { return byte(k.store >> shift) })
		}
	}
}

func (w *sorter) pass(digit func(*sortKey) byte) {
	var ends [256]uint32
	for i := range w.keys {
		ends[digit(&w.keys[i])]++
	}
	sum := uint32(0)
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	for i := range w.keys {
		d := digit(&w.keys[i])
		w.other[ends[d]] = w.keys[i]
		ends[d]++
	}
	w.keys, w.other = w.other, w.keys
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
