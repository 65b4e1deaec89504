package table

import "bytes"

// View collects the writes of one store since the last Seal with from <= key < to (a nil
// bound is open), copied and not yet sorted, in a form of its own: later writes to the
// table do not change it. It is nil when there are none.
func (t *Table) View(store uint32, from, to []byte) *Sealed {
	var s *Sealed
	for _, g := range [2]*generation{t.old, t.young} {
		for _, ref := range g.dirty {
			e := g.at(ref)
			m := meta(e)
			if m&flagDirty == 0 || m&storeMask != store || !within(entryKey(e), from, to) {
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
