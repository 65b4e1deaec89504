package migration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore"
)

// nameGoka gives each of goka's tables the name of its store. One that is of no store of
// this task is reported, and nothing is done with it.
func (p *taskPlan) nameGoka() {
	found := p.stores
	p.stores = slices.DeleteFunc(slices.Clone(found), func(d storeDir) bool { return d.goka != nil })
	for _, d := range found {
		if d.goka == nil {
			continue
		}
		names, why := p.gokaStores(d)
		for _, name := range names {
			if _, taken := p.storeDir(name); taken {
				why = fmt.Sprintf("%s: store %q has another database in this task: nothing is done with this one", d.path, name)
				continue
			}
			d.store = name
			if p.o.Sources[name] != nil { // the caller reads it, and has its offset elsewhere
				d.goka, d.engine = nil, engineLevelDB
			}
			p.stores = append(p.stores, d)
		}
		if why != "" {
			e := Entry{Topic: d.goka.topic, Partition: d.goka.partition, State: StateAbsent, Action: ActionNone, attention: true}
			d.goka.tell(&e)
			e.Reason = why
			p.Entries = append(p.Entries, e)
		}
	}
}

// gokaStores gives the stores that a table of goka is the data of, or why it is of none.
func (p *taskPlan) gokaStores(d storeDir) (stores []string, why string) {
	g := d.goka
	switch {
	case p.id.global:
		return nil, fmt.Sprintf("%s: a global store is restored from its topic, not taken over from goka", d.path)
	case g.topic == "":
		return []string{d.store}, ""
	case g.partition != p.id.partition:
		return nil, fmt.Sprintf("%s: partition %d in a task of partition %d", d.path, g.partition, p.id.partition)
	}
	for _, name := range slices.Sorted(maps.Keys(p.o.Specs)) {
		if p.o.Specs[name].Changelog == g.topic {
			stores = append(stores, name)
		}
	}
	if len(stores) > 0 {
		return stores, ""
	}
	if stores, why = p.storesOf(offsetfile.Line{Topic: g.topic, Partition: g.partition}); len(stores) == 0 {
		why = d.path + ": " + why
	}
	return stores, why
}

// takeGoka reports the tables that have a store. The offset is believed under every
// guarantee: goka writes without transactions, so there is nothing aborted in the data, and
// what the data is ahead is written again.
func (p *taskPlan) takeGoka() {
	for _, d := range p.stores {
		if d.goka == nil {
			continue
		}
		e := Entry{Topic: cmp.Or(d.goka.topic, p.changelogOf(d.store)), Partition: p.id.partition, State: StateAbsent, Store: d.store}
		d.goka.tell(&e)
		_, done := p.settled[d.store]
		switch cause := d.goka.cause; {
		case done:
		case cause != nil && !d.goka.damaged():
			e.Action, e.attention, e.Reason = ActionSkip, true, cause.Error()+": nothing is done with the store until it can be read"
		case cause != nil:
			e.attention = true
		}
		p.decide(&e, "")
		p.Entries = append(p.Entries, e)
	}
}

// tell fills in what the table says of its offset.
func (g *gokaTable) tell(e *Entry) {
	e.Raw, e.Reason = g.raw, g.reason
	if g.cause != nil {
		e.Reason = "its database cannot be read: " + g.cause.Error()
	}
	if g.raw == nil {
		return
	}
	next, ok := nextOf(*g.raw, false)
	if *g.raw < 0 || !ok {
		e.Reason = fmt.Sprintf("the offset %d means nothing", *g.raw)
		return
	}
	e.State, e.NextOffset = StateAt, &next
}

func (g *gokaTable) damaged() bool {
	_, bad := errors.AsType[*badDatabase](g.cause)
	return bad
}

func (p *taskPlan) isGoka(store string) bool {
	d, ok := p.storeDir(store)
	return ok && d.goka != nil
}

// takes is what the options say; a value of goka has no timestamp before it.
func (p *taskPlan) takes(store string) bool {
	kind := p.o.Specs[store].Kind
	return p.o.takes(store) && (!p.isGoka(store) || kind == 0 || kind == statestore.KindKeyValue)
}
