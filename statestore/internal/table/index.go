package table

import (
	"bytes"

	"github.com/tidwall/btree"
)

// index has the dirty entries of one store in key order, as references. Entries only come,
// never go: an interval ends with the whole index.
type index struct {
	gens  *[2]*generation
	tree  *btree.BTreeG[place]
	probe []byte // the key that probePlace stands for
	// hint is the path of the last write: the next one is often near.
	hint btree.PathHint
	// readers are the open cursors on tree. It must not change while there are any; the first
	// write then goes to a copy, which shares its nodes until they are written to.
	readers int
}

// place is the id of a generation and the reference of an entry in it.
type place uint64

func placeOf(gen, ref uint32) place { return place(gen)<<32 | place(ref) }

// probePlace is no entry's.
const probePlace = ^place(0)

func newIndex(gens *[2]*generation) *index {
	x := &index{gens: gens}
	x.tree = btree.NewBTreeGOptions(x.less, btree.Options{NoLocks: true})
	return x
}

func (x *index) entry(p place) []byte { return x.gens[p>>32].at(uint32(p)) }

func (x *index) key(p place) []byte {
	if p == probePlace {
		return x.probe
	}
	return entryKey(x.entry(p))
}

func (x *index) less(a, b place) bool { return bytes.Compare(x.key(a), x.key(b)) < 0 }

// put notes where the newest version of an entry is.
func (x *index) put(gen, ref uint32) {
	if x.readers > 0 {
		x.tree, x.readers = x.tree.Copy(), 0
	}
	x.tree.SetHint(placeOf(gen, ref), &x.hint)
}

// clear forgets all entries.
func (x *index) clear() {
	if x.readers > 0 {
		x.tree = btree.NewBTreeGOptions(x.less, btree.Options{NoLocks: true})
		x.readers = 0
		return
	}
	x.tree.Clear()
}

// read begins an iterator, which is on no entry yet.
func (x *index) read(it *btree.IterG[place]) *btree.BTreeG[place] {
	x.readers++
	it.Init(x.tree, false)
	return x.tree
}

// seek moves an iterator to the first entry not before key.
func (x *index) seek(it *btree.IterG[place], key []byte) bool {
	x.probe = key
	ok := it.Seek(probePlace)
	x.probe = nil
	return ok
}

// endRead ends an iterator of a tree.
func (x *index) endRead(tree *btree.BTreeG[place]) {
	if x.tree == tree {
		x.readers--
	}
}
