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
	gens       [2]*generation
	young, old *generation
	half       int
	shrinking  bool  // to a smaller budget
	interval   int64 // being written
	applied    int64 // the last one that is in the database
	dirtyBytes int
	// sealedBytes is that of what is sealed and not yet applied.
	sealedBytes int
	dirtyCount  int
	complete    []bool
	drops       int
	flips       int

	dirtyRanges int       // ranges deleted since the last Seal
	deleted     []deleted // by store
	epoch       uint32    // ranges deleted since the last sweep

	rangesSealed  bool // and not applied
	rangesApplied int

	indexAfter int       // the constant; tests change it
	orders     []*order  // by store; nil: it was never scanned
	indexes    int       // that are kept
	open       []*Cursor // over indexes

	counters counters

	// The last key looked up, so that the Put after a Get need not probe again.
	lastTag   uint32
	lastStore uint32
	last      uint32 // its reference in young; 0 = none
}

// maxHalf keeps a generation, with maxDirty on top, far from the end of its references, so
// that an entry can always be promoted; minHalf is what even a table that may keep nothing
// needs.
const (
	minHalf = 4 << 10
	maxHalf = 8 << 30
)

// New gives a table that keeps about budget bytes of clean entries, at most 16 GiB. (What
// is not yet in the database is kept whatever it takes.)
func New(budget int) *Table {
	t := &Table{half: halfOf(budget), interval: 1, indexAfter: indexAfter}
	t.newGenerations()
	t.publish()
	return t
}

func (t *Table) newGenerations() {
	t.gens = [2]*generation{newGeneration(0), newGeneration(1)}
	t.young, t.old = t.gens[0], t.gens[1]
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
	if t.epoch > 0 && ref != 0 {
		t.settle(t.young.at(ref))
	}
	t.lastTag, t.lastStore, t.last = tag, store, ref
	return ref
}

func (t *Table) promote(tag, store uint32, key []byte, o uint32) uint32 {
	e := t.old.at(o)
	if t.epoch > 0 {
		t.settle(e)
	}
	m := meta(e)
	value := entryValue(e)
	ref := t.young.write(store, m&^storeMask, key, value, 0, entryTime(e))
	if ref == 0 {
		return 0
	}
	t.young.link(tag, ref)
	t.old.moved++
	if m&flagDirty != 0 {
		t.young.dirty = append(t.young.dirty, ref)
		setMeta(e, m&^flagDirty)
		if x := t.indexOf(store); x != nil {
			x.put(t.young.id, ref)
		}
	}
	// The write may not be in the database yet. The copy needs no mark of its own to stay:
	// the young generation is not dropped before the old one is, and that has its mark.
	return ref
}

// Get tells what the table knows about key. The value is valid until the next call.
func (t *Table) Get(store uint32, key []byte) (value []byte, timestamp int64, a Answer) {
	if t.young.total >= t.half {
		t.flip()
	}
	ref := t.lookup(store, key)
	if ref == 0 {
		if t.Complete(store) || t.epoch > 0 && t.deletes(store, key) {
			t.counters.hits++
			return nil, 0, Absent
		}
		t.counters.misses++
		return nil, 0, Unknown
	}
	t.counters.hits++
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
	return t.young.find(tag, store, key) != 0 || t.old.n > 0 && t.old.find(tag, store, key) != 0 || t.deletes(store, key)
}

// Logged tells whether the running interval's last write of key goes into the changelog;
// false when there is none, or when it was deleted with a range. It does not touch the entry.
func (t *Table) Logged(store uint32, key []byte) bool {
	tag := hash(store, key)
	g := t.young
	ref := g.find(tag, store, key)
	if ref == 0 && t.old.n > 0 {
		g = t.old
		ref = g.find(tag, store, key)
	}
	if ref == 0 {
		return false
	}
	e := g.at(ref)
	return meta(e)&(flagDirty|flagUnlogged|flagErased) == flagDirty && !t.gone(e)
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
	flags := t.epoch << epochShift
	if value == nil {
		flags |= flagAbsent
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

// Load is Fill for a scan of the database: a key that is known keeps what is known. The
// scan must have begun after [Table.RangesApplied] last changed; and if writes were applied since
// it began, [Table.Drops] must not have changed after [Table.MakeRoom]: what was dropped may be
// newer than what the scan shows.
func (t *Table) Load(store uint32, key, value []byte, timestamp int64) bool {
	t.MakeRoom()
	if t.lookup(store, key) != 0 || t.epoch > 0 && t.deletes(store, key) {
		return true
	}
	return t.Fill(store, key, value, timestamp)
}

// MakeRoom gives entries up if the next Load would.
func (t *Table) MakeRoom() {
	if t.young.total >= t.half {
		t.flip()
	}
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

// DirtyCount is the number of keys written and of ranges deleted since the last Seal; a key
// that was deleted with a range since is still counted.
func (t *Table) DirtyCount() int { return t.dirtyCount + t.dirtyRanges }

// DeletesRanges tells whether a range was deleted since the last Seal.
func (t *Table) DeletesRanges() bool { return t.dirtyRanges > 0 }

// Bytes is the memory in use, without what is kept for later use.
func (t *Table) Bytes() int { return t.young.total + t.old.total }

// Holds tells whether there may be entries of the store.
func (t *Table) Holds(store uint32) bool {
	return int(store) < len(t.young.holds) && t.young.holds[store] || int(store) < len(t.old.holds) && t.old.holds[store]
}

// Reset forgets everything, the writes too. No store is complete afterwards.
func (t *Table) Reset() {
	t.detachCursors(0, true)
	if len(t.open) > 0 {
		t.newGenerations() // somebody may hold slices of the old ones
	} else {
		t.young.clear(t.half)
		t.old.clear(t.half)
	}
	t.sealOrders()
	clear(t.complete)
	clear(t.deleted)
	t.epoch, t.dirtyRanges, t.rangesSealed = 0, 0, false
	t.young.born, t.old.born = 0, 0
	t.dirtyBytes, t.sealedBytes, t.dirtyCount, t.last = 0, 0, 0, 0
	t.interval++
	t.applied = t.interval - 1
	t.drops++
	t.publish()
}
