package table

import "encoding/binary"

// generation is one hash table: open addressing, linear probing, at most 3/4 full, no
// deletion (a deleted key is an entry that says so).
type generation struct {
	arena
	id    uint32   // its place in Table.gens
	slots []uint64 // tag<<32 | reference; 0 = empty
	mask  uint32
	n     int
	moved int      // of n, those that went on into the young generation
	dirty []uint32 // references of dirty entries; some are clean again (moved, or promoted)
	// writer is the last interval in which an entry was written here.
	writer int64
	// born is the epoch in which the generation began; no entry is older.
	born uint32
	// holds tells of which stores there may be entries here.
	holds []bool
}

const firstSlots = 64

func newGeneration(id uint32) *generation {
	return &generation{id: id, arena: arena{total: 8 * firstSlots}, slots: make([]uint64, firstSlots), mask: firstSlots - 1}
}

func (g *generation) find(tag, store uint32, key []byte) uint32 {
	for i := tag & g.mask; ; i = (i + 1) & g.mask {
		s := g.slots[i]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == tag && matches(g.at(uint32(s)), store, key) {
			return uint32(s)
		}
	}
}

func matches(e []byte, store uint32, key []byte) bool {
	return keyLen(e) == len(key) && meta(e)&storeMask == store && string(e[headerSize:headerSize+len(key)]) == string(key)
}

// write puts an entry into the arena, not yet into the slots. It returns 0 when the
// arena has no room left. flags holds the epoch too.
func (g *generation) write(store, flags uint32, key, value []byte, capacity int, timestamp int64) uint32 {
	capacity = align(max(capacity, len(value)))
	ref := g.alloc(headerSize + align(len(key)) + capacity)
	if ref == 0 {
		return 0
	}
	e := g.at(ref)
	binary.LittleEndian.PutUint32(e[offKeyLen:], uint32(len(key)))
	binary.LittleEndian.PutUint32(e[offValCap:], uint32(capacity))
	setMeta(e, store|flags)
	setTime(e, timestamp)
	copy(e[headerSize:], key)
	setValue(e, value)
	for int(store) >= len(g.holds) {
		g.holds = append(g.holds, false)
	}
	g.holds[store] = true
	return ref
}

func (g *generation) link(tag, ref uint32) {
	if g.n*4 >= len(g.slots)*3 {
		g.grow()
	}
	g.insert(uint64(tag)<<32 | uint64(ref))
	g.n++
}

func (g *generation) insert(slot uint64) {
	i := uint32(slot>>32) & g.mask
	for g.slots[i] != 0 {
		i = (i + 1) & g.mask
	}
	g.slots[i] = slot
}

func (g *generation) grow() {
	old := g.slots
	g.slots = make([]uint64, 2*len(old))
	g.total += 8 * len(old)
	g.mask = uint32(len(g.slots) - 1)
	for _, s := range old {
		if s != 0 {
			g.insert(s)
		}
	}
}

// relink makes the slot of an entry point to its new place.
func (g *generation) relink(tag, from, to uint32) {
	for i := tag & g.mask; ; i = (i + 1) & g.mask {
		if uint32(g.slots[i]) == from {
			g.slots[i] = uint64(tag)<<32 | uint64(to)
			return
		}
	}
}

// clear forgets all entries. It keeps memory for about so many bytes of them.
func (g *generation) clear(keep int) {
	g.arena.clear(keep)
	n := len(g.slots)
	for n > firstSlots && 2*8*n > keep {
		n /= 2
	}
	if n < len(g.slots) {
		g.slots, g.mask = make([]uint64, n), uint32(n-1)
	} else {
		clear(g.slots)
	}
	g.total = 8 * len(g.slots)
	clear(g.holds)
	g.n, g.moved, g.writer = 0, 0, 0
	g.dirty = g.dirty[:0]
}
