package migration

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// lookIntoStore reads what the task's own store knows, if there is one: a store with an
// offset of its own, or that took one over before, takes nothing again. (One that was
// cleared since must not get the old data back.)
func (p *taskPlan) lookIntoStore() {
	v, err := statestore.OpenReadOnly(p.dir, statestore.ReadOptions{Resources: p.o.Resources, Logger: p.o.Logger})
	if errors.Is(err, statestore.ErrNoStore) {
		return
	}
	if err != nil {
		p.attention = true
		p.notes = append(p.notes, err.Error())
		for _, d := range p.stores {
			p.settle(d.store, settled{reason: "the task's own store cannot be opened: " + err.Error()})
		}
		return
	}
	m := v.Metadata()
	if err := v.Close(); err != nil {
		p.notes = append(p.notes, err.Error())
	}
	for _, s := range m.Stores {
		switch {
		case !s.Offset.IsAbsent():
			p.settle(s.Spec.Name, settled{reason: fmt.Sprintf("the store has an offset of its own: %v", s.Offset)})
		case s.Complete && !m.CommitID.IsZero():
			p.settle(s.Spec.Name, settled{reason: fmt.Sprintf("the store holds what commit %v says", m.CommitID)})
		}
	}
	for _, x := range m.Imports {
		p.settle(x.Store, settled{imported: true,
			reason: fmt.Sprintf("taken over before, from %s at %s", x.Source, x.Time.UTC().Format(time.RFC3339))})
	}
}

func (p *taskPlan) settle(store string, x settled) {
	if p.Task.settled == nil {
		p.Task.settled = map[string]settled{}
	}
	p.Task.settled[store] = x
}
