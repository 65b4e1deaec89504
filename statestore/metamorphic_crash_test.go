package statestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func (h *sim) external(p Spec) bool {
	return strings.HasSuffix(p.Name, "-own") || strings.HasSuffix(p.Name, "-wrapped")
}

// open opens the task store where the task is, and brings it to the end of the changelogs.
func (h *sim) open() {
	clean := h.clean
	h.s, h.clean, h.lenient = nil, false, true
	h.verify()
	o := h.o
	o.FS = h.files(h.p)
	s, err := Open("task", o)
	h.s = s
	h.ok(err)
	specs := append([]Spec{}, h.specs...)
	for i, p := range specs {
		if h.external(p) {
			store, err := openFileStore(o.FS, "own/"+p.Name, strings.HasSuffix(p.Name, "-own"))
			h.ok(err)
			specs[i].Store = store
		}
	}
	h.ok(s.Register(specs...))
	h.lenient = false
	base, before := h.recovered()
	h.takeOver(base, clean)
	h.maybeUnchanged(before)
	h.adoptAll()
	h.catchUp()
}

// verify wants the directory, as a close or a crash has left it, to be whole, and looks how its stores were declared.
func (h *sim) verify() {
	h.declared = map[string]Spec{}
	v, err := OpenReadOnly("task", ReadOptions{FS: h.p.fs, Logger: h.o.Logger})
	if errors.Is(err, ErrNoStore) {
		return
	}
	h.must(err)
	for _, st := range v.Metadata().Stores {
		h.declared[st.Spec.Name] = st.Spec
	}
	found, err := v.Verify(context.Background())
	h.must(errors.Join(err, v.Close()))
	if len(found.Problems) > 0 {
		h.fail("verify: %q", found.Problems)
	}
	for _, st := range found.Stores {
		if st.Expired > 0 {
			h.fail("verify: %d rows of %s have expired: every batch that makes rows expire removes them", st.Expired, st.Name)
		}
	}
}

// recovered finds which of the states a crash may leave this is, whole. The task's database
// tells; what lies beside it is compared by takeOver. before is the state that Register has changed; nil = it
// has changed none.
func (h *sim) recovered() (base, before *simState) {
	if h.o.Engine == Memory {
		empty := newSimState(h.specs)
		h.must(h.isState(empty, true))
		for name, st := range h.p.since[0].stores { // a user's own store is not in memory
			empty.stores[name].stale = st.stale
		}
		return empty, nil
	}
	var reasons []string
	for _, i := range h.candidates() {
		found := h.p.since[i]
		base = h.registered(found)
		err := h.isState(base, h.changes(found))
		if err == nil {
			if i < len(h.p.since)-1 {
				simCounts.behind++
			}
			for _, p := range h.specs {
				base.stores[p.Name].recorded = h.recordedOffset(p) // which may be where the store was found before
			}
			if h.changes(found) {
				before = found
			}
			return base, before
		}
		reasons = append(reasons, err.Error())
	}
	h.fail("recovered state is none of the %d possible ones:\n%s", len(h.p.since), strings.Join(reasons, "\n"))
	return nil, nil
}

func (h *sim) wrongProgress(m *simState) error {
	positions := h.s.Positions()
	if h.s.CommitID() != m.id || h.s.StreamTime() != m.streamTime || len(positions) > 1 || len(positions) == 1 != (m.position > 0) || len(positions) == 1 && positions[0].Next != m.position {
		return fmt.Errorf("commit %v, stream time %d, positions %v; want %v, %d, %d", h.s.CommitID(), h.s.StreamTime(), positions, m.id, m.streamTime, m.position)
	}
	states, err := h.s.Stores()
	h.ok(err)
	for _, st := range states {
		want := m.stores[st.Spec.Name]
		if h.inDatabase(want.spec) && (st.Offset != want.offset || st.Complete != want.complete) {
			return fmt.Errorf("%s: offset %v, complete %t; want %v, %t", st.Spec.Name, st.Offset, st.Complete, want.offset, want.complete)
		}
		if h.external(want.spec) && st.Complete && !want.unknown && (st.Offset != want.offset || !want.complete) {
			return fmt.Errorf("%s: complete at %v; want %v, %t", st.Spec.Name, st.Offset, want.offset, want.complete)
		}
	}
	return nil
}

// isState compares with one state. rewritten: Register has written a commit record, which says where it found a user's own store.
func (h *sim) isState(m *simState, rewritten bool) (err error) {
	if err := h.wrongProgress(m); err != nil {
		return err
	}
	for _, p := range h.specs {
		st := m.stores[p.Name]
		// Of a store that was not found where the record said, the next write of anything records where it was found.
		if recorded := h.recordedOffset(p); h.external(p) && recorded != st.recorded && !(st.unknown && recorded == st.offset) && !(rewritten && recorded == h.found(p)) {
			return fmt.Errorf("%s: the commit record says %v; want %v", p.Name, recorded, st.recorded)
		}
		if h.inDatabase(p) {
			if err := h.tried(func() { h.compareStore(p, st) }); err != nil {
				return fmt.Errorf("at commit %v, store %s: %w", m.id, p.Name, err)
			}
		}
	}
	return nil
}

// recordedOffset is what the commit record says of a store, whatever the store itself says.
func (h *sim) recordedOffset(p Spec) Offset {
	record, ok, err := h.s.db.Get("test", keyCommit, nil)
	h.ok(err)
	if !ok {
		return Offset{}
	}
	m, err := decodeCommit(record)
	h.must(err)
	return m.stores[h.s.catalog.Load().ids[p.Name]].offset
}

// tried makes an error of a failure.
func (h *sim) tried(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(simFailure)
			if !ok {
				panic(p)
			}
			err = errors.New(string(f))
		}
	}()
	do()
	return nil
}

// takeOver makes the model what was recovered.
func (h *sim) takeOver(base *simState, clean bool) {
	states, err := h.s.Stores()
	h.ok(err)
	for i, st := range states {
		p := h.specs[i]
		m := base.stores[p.Name]
		switch {
		case h.inDatabase(p):
		case p.InMemory:
			base.stores[p.Name] = newSimStore(p)
			if !st.Offset.IsAbsent() || st.Complete || !st.Empty {
				h.fail("%s is in memory, and after a restart is %+v", p.Name, st)
			}
		case st.Complete:
			if !clean && strings.HasSuffix(p.Name, "-wrapped") {
				m.unknown = true // an Apply that is not in the file yet is made good from the changelog
			}
			if !m.unknown {
				h.compareStore(p, m)
			}
			m.offset, m.complete = st.Offset, true
		case clean && m.complete && !m.unknown && m.offset != At(0) && st.Recorded.Changelog == st.Spec.Changelog && h.o.Engine != Memory:
			h.fail("%s is not complete after a clean restart: %+v", p.Name, st)
		default:
			m.unknown, m.offset, m.complete = true, st.Offset, false
		}
	}
	h.p.committed, h.now = base, base.clone()
	h.x, h.sealed, h.committed = nil, nil, false
	h.durable()
	h.compareDurable()
}

func (h *sim) adoptAll() {
	states, err := h.s.Stores()
	h.ok(err)
	for _, st := range states {
		if st.Recorded.Changelog != st.Spec.Changelog {
			h.ok(h.s.Adopt(st.Spec.Name))
		}
	}
}

// catchUp restores every store to the end of its changelog, as a task does.
func (h *sim) catchUp() {
	for _, p := range h.specs {
		if p.Changelog != "" {
			h.restore(p)
		}
	}
	next := h.p.committed.clone()
	next.id, next.streamTime = h.last.id, h.last.streamTime
	if h.last.position > 0 {
		next.position = h.last.position
	}
	for name, st := range next.stores {
		st.complete = true
		if p := st.spec; p.Changelog != "" { // whatever it was before, now it must be this
			offset := st.offset
			whole := h.logged[name].clone()
			if d := h.differs(st, whole); d != "" && !st.unknown {
				h.fail("model of %s: %s", name, d)
			}
			if h.rewindowed(p) {
				whole = st // what another retention has kept or not, the changelog does not know
			}
			whole.offset, whole.complete = offset, true
			next.stores[name] = whole
		}
	}
	h.begin(next)
	h.done(h.s.Complete(h.last.progress(), nil))
	h.now = h.p.committed.clone()
	h.compareNow()
}

func (h *sim) restore(p Spec) {
	m, log := h.p.committed.stores[p.Name], h.log[p.Name]
	at, known := m.offset.Next()
	if !known || m.stale || m.unknown && h.rewindowed(p) {
		h.clearStore(p)
		at = 0
	}
	for at < int64(len(log)) {
		n := min(int64(len(log)), at+1+h.rng.Int64N(20))
		if h.rng.IntN(3) == 0 {
			n = int64(len(log))
		}
		next := h.p.committed.clone()
		st := next.stores[p.Name]
		for _, r := range log[at:n] {
			st.logged(r)
		}
		st.expire()
		st.offset, st.complete = At(n), false
		h.begin(next)
		h.done(h.restoreSome(p, log[at:n], n))
		at = n
	}
	h.now = h.p.committed.clone()
}

// restoreSome restores records as one batch, or as one run.
func (h *sim) restoreSome(p Spec, records []RestoreRecord, next int64) error {
	runs := h.o.Engine == Pebble && h.inDatabase(p) && (p.Kind == KindKeyValue || p.Kind == KindTimestampedKeyValue)
	if !runs || h.rng.IntN(3) > 0 {
		return h.s.Restore(p.Name, records, next)
	}
	h.lenient = true // a table that cannot be written does not fail the task store
	defer func() { h.lenient = false }()
	x, err := h.s.RestoreRuns(p.Name)
	if err == nil {
		defer x.Close()
		err = errors.Join(x.Add(records, next), x.Flush())
	}
	if err != nil {
		h.ok(err)
	}
	return err
}

// reopen closes and opens.
func (h *sim) reopen() {
	h.close()
	h.open()
}

// close makes everything durable.
func (h *sim) close() {
	h.lenient = true
	h.ok(h.s.Close())
	h.durable()
	h.clean = true
}

// move closes, and goes on in the other directory, which is behind.
func (h *sim) move() {
	h.close()
	h.faults.mu.Lock()
	if h.p == h.places[0] {
		h.p = h.places[1]
	} else {
		h.p = h.places[0]
	}
	h.faults.mu.Unlock()
	h.open()
}

// powerLoss loses the power now.
func (h *sim) powerLoss() {
	h.faults.arm(simPower, 0, h.rng.Uint64())
	h.faults.mu.Lock()
	h.faults.hit = true
	h.faults.mu.Unlock()
	h.ok(nil)
}

func (h *sim) powerLossLater() {
	h.faults.arm(simPower, 1+h.rng.IntN(40), h.rng.Uint64())
}

func (h *sim) failLater() {
	if h.c.faults {
		h.faults.arm(simOneError+h.rng.IntN(3), 1+h.rng.IntN(40), h.rng.Uint64())
	}
}

// crash ends the process, and begins another one with what the crash left.
func (h *sim) crash() {
	h.tell("  crash")
	simCounts.crashes++
	clone, left := h.faults.clone, h.faults.left
	if clone == nil {
		rng := rand.New(rand.NewPCG(h.rng.Uint64(), 4))
		percent := 100
		if h.rng.IntN(2) == 0 {
			percent = rng.IntN(101)
		}
		clone = h.p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		left = h.p.since
	}
	if h.s != nil {
		_ = h.s.Close() // what it writes now is not in the clone
	}
	h.faults.arm(simPower, 0, 0)
	h.faults.mu.Lock()
	h.p.fs, h.p.since = clone, left
	h.faults.mu.Unlock()
	h.open()
}
