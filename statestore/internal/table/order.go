package table

import (
	"bytes"
	"slices"
)

// order says how the writes of one store that is scanned are brought into order. A scan
// alone collects and sorts those in its range. From so many scans an interval on, an index
// is kept in order with every write, also in the intervals that follow, until there are
// fewer. Stores that are not scanned pay nothing.
type order struct {
	index *index // nil: not kept
	scans int    // in the running interval
}

// indexAfter is from how many scans an interval on an index is kept. The index costs each
// write of the interval about what a collecting scan costs for a few of them, so the scans
// before may cost as much as it does, and one or two an interval are not worth it.
const indexAfter = 8

// orderOf notes a scan of a store.
func (t *Table) orderOf(store uint32) *order {
	for int(store) >= len(t.orders) {
		t.orders = append(t.orders, nil)
	}
	o := t.orders[store]
	if o == nil {
		o = &order{}
		t.orders[store] = o
	}
	if o.scans++; o.scans > t.indexAfter && o.index == nil {
		t.buildIndex(store, o)
	}
	return o
}

// indexOf gives the store's index when there is one.
func (t *Table) indexOf(store uint32) *index {
	if t.indexes == 0 || int(store) >= len(t.orders) || t.orders[store] == nil {
		return nil
	}
	return t.orders[store].index
}

func (t *Table) buildIndex(store uint32, o *order) {
	x := newIndex(&t.gens)
	var places []place
	for _, g := range [2]*generation{t.old, t.young} {
		for _, ref := range g.dirty {
			if meta(g.at(ref))&(flagDirty|storeMask) == flagDirty|store {
				places = append(places, placeOf(g.id, ref))
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare(x.key(a), x.key(b)) })
	for _, p := range places {
		x.tree.Load(p)
	}
	o.index = x
	t.indexes++
}

// sealOrders begins a new interval.
func (t *Table) sealOrders() {
	for _, o := range t.orders {
		if o == nil {
			continue
		}
		switch {
		case o.index == nil:
		case o.scans <= t.indexAfter:
			o.index = nil
			t.indexes--
		default:
			o.index.clear()
		}
		o.scans = 0
	}
}
