package statestore

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// A windowed, session or versioned store has a clock of its own, which its writes move. It
// is sealed and committed with them, and goes back with them when they are dropped.

// expiring tells whether the kind keeps its entries in segments.
func (k Kind) expiring() bool { return k >= KindWindow && k <= KindVersioned }

// segmentMillis gives the segment interval of a new store.
func (p Spec) segmentMillis() int64 {
	switch p.Kind {
	case KindWindow, KindTimestampedWindow, KindSession:
		return kinds.WindowInterval(p.Retention.Milliseconds())
	case KindVersioned:
		return kinds.HistoryInterval(p.Retention.Milliseconds())
	}
	return 0
}

// layout gives that of a store as it is recorded.
func (p Spec) layout() kinds.Layout {
	return kinds.Layout{Retention: p.Retention.Milliseconds(), Interval: p.segmentMS}
}

// maxSegments is how many segments a store may be divided into while its entries are kept:
// a fetch of one key looks into each.
const maxSegments = 1024

// keepsSegments gives the segment interval of a store that is declared with another
// retention than before: the recorded one stays, because it is part of the keys.
func keepsSegments(old, p Spec) error {
	if old.segmentMS > 0 && p.Retention.Milliseconds()/old.segmentMS > maxSegments {
		return fmt.Errorf("%w: store %q was made for a retention of %v, in segments of %d ms; %v would be more than %d of them; "+
			"give it another name, or remove the directory so that it is restored from its changelog",
			ErrSpecChanged, p.Name, old.Retention, old.segmentMS, p.Retention, maxSegments)
	}
	return nil
}

// equip gives a store the logic of its kind, over its rows.
func (s *TaskStore) equip(st *store, segmentMS int64) {
	rows := storeRows{KeyValue: KeyValue{s: s, st: st}}
	layout := kinds.Layout{Retention: st.spec.Retention.Milliseconds(), Interval: segmentMS}
	switch st.spec.Kind {
	case KindWindow, KindTimestampedWindow:
		w := &Window{rows: rows}
		w.w = kinds.Window{Rows: &w.rows, Layout: layout, Duplicates: st.spec.RetainDuplicates, Clock: &st.clock}
		st.window, st.layout = w, &w.w.Layout
	case KindSession:
		x := &Session{rows: rows}
		x.x = kinds.Session{Rows: &x.rows, Layout: layout, Clock: &st.clock}
		st.session, st.layout = x, &x.x.Layout
	case KindVersioned:
		v := &Versioned{rows: rows}
		v.v = kinds.Versioned{Rows: &v.rows, Layout: layout, Clock: &st.clock, Unlogged: st.spec.Changelog == ""}
		st.versioned, st.layout = v, &v.v.Layout
	default:
		s.handles[st.spec.Name] = &KeyValue{s: s, st: st}
	}
}

// resetClocks makes the clocks those of the last commit.
func (s *TaskStore) resetClocks() {
	last := s.committed.Load()
	for _, st := range s.registered() {
		st.clock, st.expired = last.stores[st.id].clock, 0
		st.moved(last.stores[st.id].before)
	}
}

// cachedAfter gives a time after which every window of the store is in the table, if there is
// one: windows are new most often, and a new one need not be looked for in the database. What
// the table has dropped is not later than the store's stream time was then.
func (s *TaskStore) cachedAfter(st *store) int64 {
	if drops := s.table.Drops(); drops != st.drops || !st.counted {
		st.drops, st.counted, st.cachedAfter = drops, true, st.clock.Now()
	}
	return st.cachedAfter
}

// moved tells the logic that the clock was set by somebody else. before is that of the store's progress.
func (st *store) moved(before kinds.Clock) {
	st.counted = false
	if st.versioned != nil {
		st.versioned.v.Ended = max(st.versioned.v.Ended, st.clock.Now(), before.Now()) // before: of the rows it has
	}
}

// expire deletes what has expired since the last interval, in one range a store, whatever
// is in it. Reads do not show it any more anyway, so a range that finds no room now can wait.
func (s *TaskStore) expire() {
	for _, st := range s.registered() {
		if st.layout == nil {
			continue
		}
		if oldest := st.layout.Oldest(&st.clock); oldest > st.expired {
			if s.table.DeleteRange(st.number, nil, st.layout.Expired(&st.clock)) == nil {
				st.expired = oldest
			}
		}
	}
}

// cleared sets a store to that of one that is new, with the segment interval that was recorded.
func (st *store) cleared(segmentMS int64) {
	st.clock, st.expired = kinds.Clock{}, 0
	if st.layout != nil {
		st.layout.Interval = segmentMS
	}
}

// clocks gives what a seal keeps of the stores' clocks.
func clocks(stores []*store) []kinds.Clock {
	all := make([]kinds.Clock, len(stores))
	for i, st := range stores {
		all[i] = st.clock
	}
	return all
}

// logged gives the key of a write as it is in the changelog.
func (st *store) logged(row []byte) []byte {
	switch {
	case st.versioned != nil:
		return kinds.LoggedVersion(row)
	case st.layout != nil:
		return kinds.Logged(row)
	}
	return row
}

// onlyLogged tells whether a write goes into the changelog and not into the database.
func (st *store) onlyLogged(row []byte) bool { return st.versioned != nil && kinds.IsLog(row) }

// isNot is the error of opening a store as what it is not.
func (st *store) isNot(what string) error {
	return fmt.Errorf("store %q is a %v store, not a %s store", st.spec.Name, st.spec.Kind, what)
}
