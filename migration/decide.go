package migration

import (
	"fmt"
	"slices"
)

func (t *Task) storeDir(store string) (storeDir, bool) {
	i := slices.IndexFunc(t.stores, func(d storeDir) bool { return d.store == store })
	if i < 0 {
		return storeDir{}, false
	}
	return t.stores[i], true
}

// movable tells whether the data of a store can be read.
func (p *taskPlan) movable(store string) bool {
	d, onDisk := p.storeDir(store)
	return onDisk && d.readable() || p.o.Sources[store] != nil
}

// logs gives the changelog that the store is known to have; "" = it is not known.
func (p *taskPlan) logs(store string) string { return p.o.Specs[store].Changelog }

// decide says what is done for a store's entry.
func (p *taskPlan) decide(e *Entry, how string) {
	if e.Action != "" { // foreign, or skipped
		return
	}
	if x, ok := p.settled[e.Store]; ok {
		e.Action, e.Reason = ActionSkip, x.reason
		return
	}
	if slices.Contains(p.o.Own, e.Store) && (e.State == StateAt || e.State == StateUnknown) {
		e.Action, e.Reason, e.own = ActionSkip, "a store of the program's own: its data stays, its offset goes to "+storeCheckpoint+e.Store, true
		return
	}
	movable := p.movable(e.Store)
	e.Action = ActionRestore
	from, useless := "restore from changelog "+e.Topic, p.useless(e.Store)
	about := from // as far as an offset tells
	if e.NextOffset != nil {
		about = fmt.Sprintf("%s, about %d records", from, *e.NextOffset)
	}
	switch {
	case e.State == StateAbsent:
		e.Reason = also(e.Reason, useless) + ": " + from
	case e.State == StateUnknown:
		e.Reason = also("clean, but at an unknown offset", useless) + ": " + from + " into an empty store"
	case e.State == StateSuspect && movable:
		e.waits = true
		e.Reason = "nothing proves a clean shutdown under exactly-once, so the data is not taken over (--clean-shutdown believes it): " + about
	case e.State == StateSuspect:
		e.Reason = also("nothing proves a clean shutdown under exactly-once, the data may hold aborted records", useless) + ": " + about
	case movable && p.logs(e.Store) != "" && p.logs(e.Store) != e.Topic:
		e.Reason = fmt.Sprintf("the offset is one of %s: restore from changelog %s", e.Topic, p.logs(e.Store))
	case movable && !p.takes(e.Store):
		e.Reason = fmt.Sprintf("data of its kind (%v) cannot be taken over: %s", p.o.Specs[e.Store].Kind, about)
	case !movable:
		e.Reason = useless + ": " + about
	default:
		e.Action, e.Reason = ActionMigrate, "the data moves with its offset"
	}
	if how != "" {
		e.Reason += " (" + how + ")"
	}
}

// useless says why the data of a store can be taken over in no case; "" = it can.
func (p *taskPlan) useless(store string) string {
	d, onDisk := p.storeDir(store)
	switch {
	case p.movable(store):
		return ""
	case !onDisk:
		return "no data beside the file"
	}
	return fmt.Sprintf("%s data cannot be read", d.engine)
}

// also joins two reasons; the second may be "".
func also(reason, more string) string {
	if more == "" {
		return reason
	}
	return reason + ", and " + more
}

// takeStoresWithoutEntry reports the data of stores about which no file says anything.
func (p *taskPlan) takeStoresWithoutEntry() {
	for _, d := range p.stores {
		if slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Store == d.store }) {
			continue
		}
		if e, ok := p.withoutEntry(d); ok {
			p.Entries = append(p.Entries, e)
		}
	}
}

// withoutEntry: a readable .checkpoint names every logged store, so a store that it does
// not name is not logged, or not of the topology any more.
func (p *taskPlan) withoutEntry(d storeDir) (Entry, bool) {
	e := Entry{Partition: p.id.partition, State: StateAbsent, Store: d.store, Action: ActionRestore}
	if x, ok := p.settled[d.store]; ok {
		e.Action, e.Reason = ActionSkip, x.reason
		return e, d.engine == enginePebble
	}
	if p.checkpoint.Status == StatusAbsent && p.wasMigrated && d.engine != enginePebble {
		return e, false // that was said when its files were dealt with
	}
	if p.checkpoint.Status != StatusOK {
		if p.id.global { // the topic of a global store has any name and any number of partitions
			p.notes = append(p.notes, fmt.Sprintf("%s: global store %q: restore from its topic", d.path, d.store))
			return e, false
		}
		e.Topic = p.changelogOf(d.store)
		e.Reason = fmt.Sprintf("%s: restore from changelog %s", also("no offset", p.useless(d.store)), e.Topic)
		if p.checkpoint.Status == StatusUnreadable {
			e.Action, e.Reason = ActionSkip, p.checkpoint.Path+" cannot be read: nothing is done with the store until it can"
		}
		return e, true
	}
	switch {
	case !p.o.takes(d.store):
		e.Action, e.Reason, e.attention = ActionSkip, "not logged, and of a kind whose data cannot be taken over", true
	case d.engine != enginePebble && p.o.Sources[d.store] == nil:
		p.notes = append(p.notes, fmt.Sprintf("%s: store %q has no entry in .checkpoint: not logged, or not of the topology any more; "+
			"its %s data cannot be read and is left alone", d.path, d.store, d.engine))
		return e, false
	case p.believed:
		e.Action, e.Reason = ActionMigrate, "the data of a store that is not logged moves"
	default:
		e.Action, e.attention, e.waits = ActionSkip, true, true
		e.Reason = "not logged, so it cannot be restored, and nothing proves a clean shutdown under exactly-once: decide with --clean-shutdown"
	}
	return e, true
}
