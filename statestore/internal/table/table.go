package table

import (
	"errors"
	"hash/maphash"
)

// MaxEntry is the largest key and the largest value, in bytes.
const MaxEntry = 1 << 28

// MaxStores is the number of stores that one table can tell apart.
const MaxStores = 1 << 16

// ErrFull is returned for a write when the table has no room left: the uncommitted
// writes must be committed first.
var ErrFull = errors.New("the uncommitted writes need more memory than one commit may hold; commit earlier")

// ErrTooLarge is returned for a key or value over [MaxEntry].
var ErrTooLarge = errors.New("key or value is larger than 256 MiB")

// maxDirty bounds the writes of one interval, so that one batch of the database can hold
// them (4 GiB) with two intervals in memory.
const maxDirty = 1 << 30

// Answer is what the table says about a key.
type Answer uint8

const (
	// Unknown: ask the database.
	Unknown Answer = iota
	// Absent: the store does not have the key.
	Absent
	// Present: the store has the key.
	Present
)

// seed is one for the process: hashes never leave it.
var seed = maphash.MakeSeed()

// Table holds the entries of all stores of a task, each under its store's number.
type Table struct {
	young, old *generation
	half       int
	interval   int64 // being written
	applied    int64 // the last one that is in the database
	dirtyBytes int
	dirtyCount int
	complete   []bool
	drops      int

	// The last key looked up, so that the Put after a Get need not probe again.
	lastTag   uint32
	lastStore uint32
	last      uint32 // its reference in young; 0 = none
}

// maxHalf keeps a generation, with maxDirty on top, far from the end of its references, so
// that an entry can always be promoted.
const maxHalf = 8 << 30

// New gives a table that keeps about budget bytes of clean entries, at most 16 GiB. (What
// is not yet in the database is kept whatever it takes.)
func New(budget int) *Table {
	return &Table{young: newGeneration(), old: newGeneration(), half: min(max(budget/2, 4<<10), maxHalf), interval: 1}
}

func hash(store uint32, key []byte) uint32 {
	return uint32(maphash.Bytes(seed, key)>>32) ^ store*0x9e3779b1
}

// lookup finds the key's entry and moves it into the young generation, so that it is
// kept. It returns 0 when the table has no entry (or no room to move it).
func (t *Table) lookup(store uint32, key []byte) uint32 {
	tag := hash(store, key)
	ref := t.young.find(tag, store, key)
	if ref == 0 && t.old.n > 0 {
		if o := t.old.find(tag, store, key); o != 0 {
			ref = t.promote(tag, store, key, o)
		}
	}
	t.lastTag, t.lastStore, t.last = tag, store, ref
	return ref
}

func (t *Table) promote(tag, store uint32, key []byte, o uint32) uint32 {
	e := t.old.at(o)
	m := meta(e)
	value := entryValue(e)
	ref := t.young.write(store, m&^storeMask, key, value, 0, entryTime(e))
	if ref == 0 {
		return 0
	}
	t.young.link(tag, ref)
	if m&flagDirty != 0 {
		t.young.dirty = append(t.young.dirty, ref)
		setMeta(e, m&^flagDirty)
	}
	// The write may not be in the database yet. The copy needs no mark of its own to stay:
	// the young generation is not dropped before the old one is, and that has its mark.
	return ref
}

// flip drops the old generation when the young one has had its half of the budget.
func (t *Table) flip() {
	if t.young.total < t.half || t.old.writer > t.applied {
		return
	}
	if t.old.n > 0 {
		t.drops++
		for store, held := range t.old.holds {
			if held {
				t.SetComplete(uint32(store), false)
			}
		}
	}
	t.old.clear()
	t.young, t.old = t.old, t.young
	t.last = 0
}

// Get tells what the table knows about key. The value is valid until the next call.
func (t *Table) Get(store uint32, key []byte) (value []byte, timestamp int64, a Answer) {
	if t.young.total >= t.half {
		t.flip()
	}
	ref := t.lookup(store, key)
	if ref == 0 {
		if t.Complete(store) {
			return nil, 0, Absent
		}
		return nil, 0, Unknown
	}
	e := t.young.at(ref)
	if meta(e)&flagAbsent != 0 {
		return nil, 0, Absent
	}
	return entryValue(e), entryTime(e), Present
}

// Knows tells whether Get would answer without the database, and does not touch the entry.
func (t *Table) Knows(store uint32, key []byte) bool {
	if t.Complete(store) {
		return true
	}
	tag := hash(store, key)
	return t.young.find(tag, store, key) != 0 || t.old.n > 0 && t.old.find(tag, store, key) != 0
}

// Put writes a value, nil for a deletion. Key and value are copied.
func (t *Table) Put(store uint32, key, value []byte, timestamp int64) error {
	if len(key) > MaxEntry || len(value) > MaxEntry {
		return ErrTooLarge
	}
	if t.dirtyBytes+headerSize+len(key)+len(value) > maxDirty {
		return ErrFull
	}
	ref := t.last
	if ref == 0 || t.lastStore != store || !matches(t.young.at(ref), store, key) {
		if t.young.total >= t.half {
			t.flip()
		}
		ref = t.lookup(store, key)
	}
	flags := uint32(flagDirty)
	if value == nil {
		flags |= flagAbsent
	}
	if ref == 0 {
		return t.insertDirty(store, flags, key, value, timestamp)
	}
	return t.overwrite(ref, store, flags, key, value, timestamp)
}

func (t *Table) insertDirty(store, flags uint32, key, value []byte, timestamp int64) error {
	// A key that could not be promoted is still in the old generation, perhaps dirty.
	if t.old.n > 0 && t.old.find(t.lastTag, store, key) != 0 {
		return ErrFull
	}
	ref := t.young.write(store, flags, key, value, 0, timestamp)
	if ref == 0 {
		return ErrFull
	}
	t.young.link(t.lastTag, ref)
	t.last = ref
	t.markDirty(ref, len(key), len(value))
	return nil
}

func (t *Table) overwrite(ref, store, flags uint32, key, value []byte, timestamp int64) error {
	e := t.young.at(ref)
	before := meta(e)
	oldLen := valLen(e)
	if len(value) > valCap(e) {
		// Twice the capacity: a value that grows with every write must not leave a copy of
		// itself behind each time.
		n := t.young.write(store, flags, key, value, 2*valCap(e), timestamp)
		if n == 0 {
			return ErrFull
		}
		setMeta(e, before&^flagDirty)
		t.young.relink(t.lastTag, ref, n)
		t.last = n
		if before&flagDirty == 0 {
			t.markDirty(n, len(key), len(value))
			return nil
		}
		t.young.dirty = append(t.young.dirty, n)
		t.dirtyBytes += len(value) - oldLen
		return nil
	}
	setValue(e, value)
	setTime(e, timestamp)
	setMeta(e, store|flags)
	if before&flagDirty == 0 {
		t.markDirty(ref, len(key), len(value))
		return nil
	}
	t.dirtyBytes += len(value) - oldLen
	return nil
}

func (t *Table) markDirty(ref uint32, key, value int) {
	t.young.dirty = append(t.young.dirty, ref)
	t.young.writer = t.interval
	t.dirtyBytes += headerSize + key + value
	t.dirtyCount++
}

// Fill remembers what the database said about key: nil value = absent. It must only be
// called for a key that Get did not know. It returns false when the table does not take
// it (no budget), and then the store is not complete.
func (t *Table) Fill(store uint32, key, value []byte, timestamp int64) bool {
	size := headerSize + align(len(key)) + align(len(value))
	if len(key) > MaxEntry || size > t.half/4 || t.young.total+size > 2*t.half {
		t.SetComplete(store, false)
		return false
	}
	var flags uint32
	if value == nil {
		flags = flagAbsent
	}
	tag := hash(store, key)
	ref := t.young.write(store, flags, key, value, 0, timestamp)
	if ref == 0 {
		t.SetComplete(store, false)
		return false
	}
	t.young.link(tag, ref)
	t.lastTag, t.lastStore, t.last = tag, store, ref
	return true
}

// Load is Fill for a scan of the database: a key that is known keeps what is known.
func (t *Table) Load(store uint32, key, value []byte, timestamp int64) bool {
	if t.young.total >= t.half {
		t.flip()
	}
	if t.lookup(store, key) != 0 {
		return true
	}
	return t.Fill(store, key, value, timestamp)
}

// Complete tells whether a key of the store that is not in the table is absent.
func (t *Table) Complete(store uint32) bool {
	return int(store) < len(t.complete) && t.complete[store]
}

// SetComplete says whether all keys of the store are in the table.
func (t *Table) SetComplete(store uint32, complete bool) {
	for int(store) >= len(t.complete) {
		t.complete = append(t.complete, false)
	}
	t.complete[store] = complete
}

// Drops counts the generations dropped so far.
func (t *Table) Drops() int { return t.drops }

// DirtyBytes is about what the writes since the last Seal take.
func (t *Table) DirtyBytes() int { return t.dirtyBytes }

// DirtyCount is the number of keys written since the last Seal.
func (t *Table) DirtyCount() int { return t.dirtyCount }

// Bytes is the memory in use, without what is kept for later use.
func (t *Table) Bytes() int { return t.young.bytes() + t.old.bytes() }

// Holds tells whether there may be entries of the store.
func (t *Table) Holds(store uint32) bool {
	return int(store) < len(t.young.holds) && t.young.holds[store] || int(store) < len(t.old.holds) && t.old.holds[store]
}

// Reset forgets everything, the writes too. No store is complete afterwards.
func (t *Table) Reset() {
	t.young.clear()
	t.old.clear()
	clear(t.complete)
	t.dirtyBytes, t.dirtyCount, t.last = 0, 0, 0
	t.interval++
	t.applied = t.interval - 1
	t.drops++
}
