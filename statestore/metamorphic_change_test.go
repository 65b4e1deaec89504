package statestore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// A program that comes back may declare a store with another retention, or with a newer schema version
// and a migration. The segments stay those that the rows lie in, until the store is cleared.

// change declares a store otherwise, and comes back with it: after a close, a power loss, or in the other directory.
func (h *sim) change() {
	if len(h.specs) == 0 {
		return
	}
	p := &h.specs[h.rng.IntN(len(h.specs))]
	if !p.Kind.expiring() || h.rng.IntN(2) == 0 {
		h.raiseSchema(p)
	} else {
		h.changeRetention(p)
	}
	h.relog(*p)
	if h.rng.IntN(3) == 0 {
		h.faults.arm(simPower, 1+h.rng.IntN(60), h.rng.Uint64())
	}
	switch h.rng.IntN(4) {
	case 0:
		h.powerLoss()
	case 1:
		h.move()
	default:
		h.reopen()
	}
}

func (h *sim) raiseSchema(p *Spec) {
	version := p.SchemaVersion + 1 + uint32(h.rng.IntN(2))
	h.tell("  %s: schema version %d, was %d", p.Name, version, p.SchemaVersion)
	p.SchemaVersion = version
	p.Migrate = &Migration{Value: func(from uint32, key, value []byte) ([]byte, error) {
		return simPresent(from, version, key, value), nil
	}}
}

// simPresent is a migration that tells which steps there were, and of which key: in several it gives
// the same as in one.
func simPresent(from, to uint32, key, value []byte) []byte {
	if value == nil {
		return nil
	}
	value = bytes.Clone(value)
	for v := from + 1; v <= to; v++ {
		value = fmt.Appendf(value, "+%d.%02d", v, crc32.ChecksumIEEE(key)%97)
	}
	return value
}

func (h *sim) changeRetention(p *Spec) {
	all := []time.Duration{20 * time.Second, 50 * time.Second, 100 * time.Second, 200 * time.Second, 400 * time.Second}
	if p.Kind == KindVersioned {
		all = []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 40 * time.Second}
	}
	retention := all[h.rng.IntN(len(all))]
	h.tell("  %s: retention %v, was %v", p.Name, retention, p.Retention)
	shortest, changed := h.shortest[p.Name]
	if !changed {
		shortest = p.Retention.Milliseconds()
	}
	h.shortest[p.Name] = min(shortest, retention.Milliseconds())
	p.Retention = retention
}

// relog makes what the changelog gives a store that is declared so.
func (h *sim) relog(p Spec) {
	m := newSimStore(p)
	for _, r := range h.log[p.Name] {
		m.logged(r)
	}
	h.logged[p.Name] = m
}

// rewindowed tells whether the store's retention has changed since its changelog begins.
func (h *sim) rewindowed(p Spec) bool {
	_, changed := h.shortest[p.Name]
	return changed
}

// differs is [simStore.differs], but that of a store whose retention has changed only what every retention has
// kept must be the same. Of versions nothing need be: one that was too late for a retention changes
// how long the one before it is valid.
func (h *sim) differs(m, o *simStore) string {
	shortest, changed := h.shortest[m.spec.Name]
	switch {
	case !changed:
		return m.differs(o)
	case m.now != o.now:
		return fmt.Sprintf("stream time %d and %d", m.now, o.now)
	case m.spec.Kind == KindVersioned:
		return ""
	}
	recent := func(k simKey) bool { return m.time(k) > m.now-shortest }
	a, b := m.list(false, recent), o.list(false, recent)
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		return fmt.Sprintf("what all retentions kept:\n %v\n %v", a, b)
	}
	return ""
}

// changes tells whether Register changes a state.
func (h *sim) changes(m *simState) bool {
	return slices.ContainsFunc(h.specs, func(p Spec) bool {
		was := m.stores[p.Name].spec
		return was.Retention != p.Retention || was.SchemaVersion != p.SchemaVersion
	})
}

// candidates gives the states that the directory may be in, the last one first, but before them those whose stores are declared as they
// are there: a state before a migration and one after it are the same to Register.
func (h *sim) candidates() []int {
	var exact, others []int
	for i := len(h.p.since) - 1; i >= 0; i-- {
		same := true
		for _, st := range h.p.since[i].stores {
			p, known := h.declared[st.spec.Name]
			same = same && (!known || p.SchemaVersion == st.spec.SchemaVersion && p.Retention == st.spec.Retention)
		}
		if same {
			exact = append(exact, i)
		} else {
			others = append(others, i)
		}
	}
	return append(exact, others...)
}

// registered gives the state that Register makes of one: values of the present schema version, and without
// what has expired by a shorter retention. (That of a user's own store goes with the next interval.)
func (h *sim) registered(m *simState) *simState {
	m = m.clone()
	for _, p := range h.specs {
		st := m.stores[p.Name]
		was := st.spec
		st.spec = p
		st.migrate(was.SchemaVersion, p.SchemaVersion)
		if h.inDatabase(p) && p.Retention < was.Retention {
			st.expire()
		}
		if p.Kind.expiring() && st.now < 0 { // nothing was ever in it, and it may be new here
			c := h.s.catalog.Load()
			st.segment = c.specs[c.ids[p.Name]].segmentMS
		}
	}
	return m
}

func (m *simStore) migrate(from, to uint32) {
	for k, v := range m.entries {
		v.value = string(simPresent(from, to, []byte(k.key), []byte(v.value)))
		m.entries[k] = v
	}
	for key, vs := range m.versions {
		vs = slices.Clone(vs)
		for i := range vs {
			if !vs[i].none {
				vs[i].value = string(simPresent(from, to, []byte(key), []byte(vs[i].value)))
			}
		}
		m.versions[key] = vs
	}
}

// maybeUnchanged says that a crash may take back what Register has done to the database.
func (h *sim) maybeUnchanged(before *simState) {
	if before == nil || h.o.SyncEveryCommit {
		return
	}
	h.faults.mu.Lock()
	defer h.faults.mu.Unlock()
	old := h.p.committed.clone()
	for _, p := range h.specs {
		if !h.external(p) {
			old.stores[p.Name] = before.stores[p.Name].clone()
		}
		old.stores[p.Name].recorded = before.stores[p.Name].recorded
	}
	h.p.since = append([]*simState{old}, h.p.since...)
}

// found is where Register has found a store.
func (h *sim) found(p Spec) Offset {
	states, err := h.s.Stores()
	h.ok(err)
	i := slices.IndexFunc(states, func(st StoreState) bool { return st.Spec.Name == p.Name })
	return states[i].Offset
}
