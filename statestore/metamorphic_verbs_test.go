package statestore

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// scanWriting reads a store while it writes into it, and perhaps commits: the scan sees its
// beginning.
func (h *sim) scanWriting() {
	p, ok := h.draw()
	if !ok || p.Kind != KindKeyValue && p.Kind != KindTimestampedKeyValue {
		return
	}
	lo, hi, reverse := h.bound(), h.bound(), h.rng.IntN(2) == 0
	want := h.now.stores[p.Name].show(reverse, func(k simKey) bool { return within(k.key, lo, hi) })
	seq := h.keyValue(p).Range(lo, hi)
	if reverse {
		seq = h.keyValue(p).ReverseRange(lo, hi)
	}
	got := []string{}
	for e, err := range seq {
		h.ok(err)
		got = append(got, simEntry(e))
		switch h.rng.IntN(4) {
		case 0:
			h.write()
		case 1:
			h.seal()
		case 2:
			h.commit()
		}
	}
	h.same("scan with writes in it", got, want)
}

func (h *sim) deleteRange() {
	p, ok := h.draw()
	if !ok || p.Kind != KindKeyValue && p.Kind != KindTimestampedKeyValue {
		return
	}
	lo, hi := h.bound(), h.bound()
	h.tell("  %s: %q to %q", p.Name, lo, hi)
	h.ok(h.keyValue(p).DeleteRange(lo, hi, h.drift))
	m := h.now.stores[p.Name]
	for k := range m.entries {
		if within(k.key, lo, hi) {
			delete(m.entries, k)
		}
	}
}

func (h *sim) prefetch() {
	p, ok := h.draw()
	if !ok || p.Kind != KindKeyValue && p.Kind != KindTimestampedKeyValue {
		return
	}
	var keys [][]byte
	for range 60 {
		keys = append(keys, []byte(h.key()))
	}
	h.ok(h.keyValue(p).Prefetch(keys))
}

func (h *sim) warm() {
	_, err := h.s.Warm(1 + h.rng.IntN(20))
	h.ok(err)
}

func (h *sim) budget() {
	if h.o.Resources != nil {
		h.o.Resources.SetCacheBytes([]int64{0, 10 << 10, 64 << 10, 1 << 20}[h.rng.IntN(4)])
		h.s.Trim()
	}
}

// seal ends an interval, if none is sealed.
func (h *sim) seal() {
	p := Progress{StreamTime: h.drift - h.rng.Int64N(100)}
	h.number++
	p.ID = CommitID{1 + h.number/50, h.number}
	if h.rng.IntN(2) == 0 {
		p.Positions = []Position{{"in", 0, h.number}}
	}
	x, err := h.s.Seal(p)
	if h.x != nil {
		if !errors.Is(err, ErrSealed) && !h.faults.struck() {
			h.fail("seal over a sealed interval: %v", err)
		}
		h.ok(nil)
		return
	}
	h.ok(err)
	h.now.advance(p)
	for _, st := range h.now.stores { // with a retention that was made shorter
		st.expire()
	}
	h.x, h.sealed = x, h.now.clone()
}

// produce writes the sealed changes to the changelogs, which must then give what was sealed.
func (h *sim) produce() (changed map[string]bool) {
	changed = map[string]bool{}
	last := ""
	for c := range h.x.Changes() {
		i := slices.IndexFunc(h.specs, func(p Spec) bool { return p.Name == c.Store })
		if at := fmt.Sprintf("%d", i); at < last {
			h.fail("a change of %s after one of a later store", c.Store)
		} else {
			last = at
		}
		if h.specs[i].Changelog == "" {
			continue
		}
		if c.Schema != h.specs[i].SchemaVersion {
			h.fail("a change of %s of schema version %d; want %d", c.Store, c.Schema, h.specs[i].SchemaVersion)
		}
		changed[c.Store] = true
		h.log[c.Store] = append(h.log[c.Store], cloneRecord(c))
		h.logged[c.Store].logged(cloneRecord(c))
	}
	for _, p := range h.specs {
		if p.Changelog == "" {
			continue
		}
		if d := h.differs(h.logged[p.Name], h.sealed.stores[p.Name]); d != "" {
			h.fail("the changelog of %s does not give what was sealed: %s", p.Name, d)
		}
	}
	h.last = h.sealed
	return changed
}

// commit commits what is sealed, perhaps while the owner goes on.
func (h *sim) commit() {
	if h.x == nil || h.committed {
		return
	}
	changed := h.produce()
	next := h.sealed.clone()
	offsets := map[string]Offset{}
	for _, p := range h.specs {
		st := next.stores[p.Name]
		// What seal copied is of before: the last commit counts.
		st.offset, st.complete = h.p.committed.stores[p.Name].offset, true
		if p.Changelog != "" && (changed[p.Name] || h.rng.IntN(2) == 0) {
			st.offset = At(int64(len(h.log[p.Name])))
			offsets[p.Name] = st.offset
		}
	}
	h.tell("  commit %v, offsets %v", next.id, offsets)
	h.begin(next)
	beside := !h.settling && h.rng.IntN(3) == 0
	result := make(chan error, 1)
	s, x := h.s, h.x
	go func() { result <- s.Commit(x, offsets) }()
	if beside {
		h.whileCommitting(result, next)
		return
	}
	h.ended(<-result, next)
}

func (h *sim) whileCommitting(result chan error, next *simState) {
	crashed := true
	defer func() {
		if crashed { // the commit must be over before anything else is done
			if err := <-result; err != nil {
				h.trace = append(h.trace, fmt.Sprintf("the commit under a crash: %v", err))
			}
		}
	}()
	for range 3 {
		h.write()
		h.read()
	}
	crashed = false
	h.ended(<-result, next)
}

func (h *sim) ended(err error, next *simState) {
	h.done(err)
	h.committed = true
	if h.rng.IntN(4) > 0 {
		h.release()
	}
}

func (h *sim) release() {
	if h.x == nil {
		return
	}
	h.s.Release(h.x)
	if h.committed {
		h.x, h.sealed, h.committed = nil, nil, false
	}
}

func (h *sim) drop() {
	h.s.Drop()
	h.x, h.sealed, h.committed = nil, nil, false
	h.now = h.p.committed.clone()
}

// lostCommit is one whose changes are in the changelogs, and that never came to the store.
func (h *sim) lostCommit() {
	if h.x == nil || h.committed {
		return
	}
	h.produce()
	h.drop()
	h.catchUp()
}

func (h *sim) sync() {
	h.ok(h.s.Sync())
	h.durable()
	h.compareDurable()
}

func (h *sim) compareDurable() {
	for name, o := range h.s.DurableOffsets() {
		// In memory nothing is durable.
		if st := h.p.committed.stores[name]; o != st.offset && !(st.spec.InMemory && o.IsAbsent()) {
			h.fail("%s: durable offset %v after a sync; committed %v", name, o, st.offset)
		}
	}
}

// settle commits all that is not, as verbs want it that go around the overlay.
func (h *sim) settle() {
	h.settling = true
	defer func() { h.settling = false }()
	h.commit()
	h.release()
	h.seal()
	h.commit()
	h.release()
}

// refusedNow tells whether a verb must be refused because of uncommitted writes, and whether it was.
func (h *sim) refusedNow(err error) {
	if h.faults.struck() {
		h.ok(nil)
	}
	if !errors.Is(err, ErrSealed) && !errors.Is(err, ErrUncommitted) {
		h.fail("over uncommitted writes: %v", err)
	}
}

// clear forgets a store, and its changelog: it begins anew.
func (h *sim) clear() {
	p, ok := h.draw()
	if !ok {
		return
	}
	if h.x != nil {
		h.refusedNow(h.s.Clear(p.Name))
	}
	h.settle()
	h.tell("  clear %s", p.Name)
	h.clearStore(p)
	if p.Changelog != "" {
		h.log[p.Name], h.logged[p.Name] = nil, newSimStore(p)
		delete(h.shortest, p.Name)
		h.forget(p)
	}
	h.catchUp()
}

// forget marks every state that there still may be of the store, but for the present one: it is
// of a changelog that there is not any more, and is cleared when the task comes to it. (A task
// knows it by the id of the topic.)
func (h *sim) forget(p Spec) {
	for _, place := range h.places {
		for _, state := range place.since {
			if state != h.p.committed {
				state.stores[p.Name].stale = true
			}
		}
	}
}

func (h *sim) clearStore(p Spec) {
	next := h.p.committed.clone()
	next.stores[p.Name] = newSimStore(p)
	h.begin(next)
	h.done(h.s.Clear(p.Name))
	h.now = h.p.committed.clone()
}

// rebuild restores a store from the start of its changelog.
func (h *sim) rebuild() {
	p, ok := h.draw()
	if !ok || p.Changelog == "" {
		return
	}
	h.settle()
	h.tell("  rebuild %s", p.Name)
	h.clearStore(p)
	h.catchUp()
}

// load takes the beginning of a changelog over as if it came from elsewhere.
func (h *sim) load() {
	p, ok := h.draw()
	if !ok || p.Changelog == "" {
		return
	}
	h.settle()
	h.clearStore(p)
	n := h.rng.IntN(len(h.log[p.Name]) + 1)
	h.tell("  load %d records into %s", n, p.Name)
	next := h.p.committed.clone()
	for _, r := range h.log[p.Name][:n] {
		next.stores[p.Name].logged(r)
	}
	h.begin(next)
	if m := next.stores[p.Name]; m.keyValue() && h.o.Engine == Pebble && h.inDatabase(p) && h.rng.IntN(2) == 0 {
		h.lenient = true // the tables are made beside the database
		h.done(h.s.LoadSorted(p.Name, m.tableRows()))
		h.lenient = false
	} else {
		h.done(h.s.Load(p.Name, h.log[p.Name][:n]))
	}
	next = next.clone()
	next.stores[p.Name].offset = At(int64(n))
	h.begin(next)
	h.done(h.s.RecordImport(Import{Store: p.Name, Source: fmt.Sprint("source ", h.rng.Uint64()), Time: time.UnixMilli(1)}, At(int64(n)), nil))
	h.durable()
	h.now = h.p.committed.clone()
	h.compareStore(p, h.now.stores[p.Name])
	h.catchUp()
}

// adopt opens with another name of a changelog, which has the same records.
func (h *sim) adopt() {
	i := h.rng.IntN(max(len(h.specs), 1))
	if len(h.specs) == 0 || h.specs[i].Changelog == "" {
		return
	}
	h.settle()
	h.topics++
	h.specs[i].Changelog = fmt.Sprintf("app-%s-changelog-%d", h.specs[i].Name, h.topics)
	h.reopen()
}

func (h *sim) stamp() { h.ok(h.s.StampOwner(Owner{ProcessID: "p", Last: time.UnixMilli(h.number)})) }

// snapshot compares one with what is committed.
func (h *sim) snapshot() {
	if h.o.Engine == Memory {
		return
	}
	h.number++
	dir := fmt.Sprint("snapshot-", h.number)
	h.lenient = true
	defer func() { h.lenient = false }()
	h.ok(h.s.Snapshot(dir))
	v, err := OpenReadOnly(dir, ReadOptions{FS: h.files(h.p), Logger: quiet()})
	if err == nil {
		defer v.Close()
	}
	h.ok(err)
	for _, p := range h.specs {
		if m := h.p.committed.stores[p.Name]; h.inDatabase(p) && p.Kind != KindVersioned {
			got := readAll(h, v.Entries(p.Name, nil, nil), func(e StoredEntry) string {
				return simText(e.Key, e.Start, e.End, e.Value, e.Timestamp)
			})
			h.superset(p.Name+" in a snapshot", got, m.list(false, func(simKey) bool { return true }))
		}
	}
	h.ok(h.p.fs.RemoveAll(dir))
}

// superset: what has expired may not have been removed yet.
func (h *sim) superset(what string, got, want []string) {
	slices.Sort(got)
	for _, x := range want {
		if _, ok := slices.BinarySearch(got, x); !ok {
			h.fail("%s: %s is missing in %q", what, x, got)
		}
	}
}

func (h *sim) inDatabase(p Spec) bool {
	return !p.InMemory && !h.external(p) || h.o.Engine == Memory && !h.external(p)
}
