package statestore

import (
	"maps"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/memdb"
)

// besideEngine keeps rows of stores that are not in the task's database. Its batches
// follow the database's.
type besideEngine interface {
	engine.Engine
	// applyAt applies what fill puts in; next is where the task is afterwards. An error ends
	// the task store.
	applyAt(op string, next *progress, size int, fill func(engine.Batch) error) error
}

// openRows gives a store the engine that keeps its rows.
func (s *TaskStore) openRows(st *store) error {
	switch {
	case st.spec.place() == inDatabase || s.o.Engine == Memory && st.spec.Store == nil:
		st.rows = s.db
		return nil
	case st.spec.InMemory:
		if s.memory == nil {
			s.memory = &memoryRows{memdb.New(func(err error) error { return s.db.Fail("store in memory", err) })}
			s.putBeside(s.memory)
		}
		s.log.Info("store is in memory: it is restored whole from its changelog", "store", st.spec.Name, "changelog", st.spec.Changelog)
		st.rows = s.memory
		return nil
	}
	return s.openExternal(st)
}

// putBeside adds an engine that is open: from here on a background sync, which can be under way
// while stores are registered, syncs it too.
func (s *TaskStore) putBeside(e besideEngine) {
	all := append(slices.Clone(s.besides()), e)
	s.beside.Store(&all)
}

// besides are the engines of the stores beside the database. Any goroutine may ask.
func (s *TaskStore) besides() []besideEngine {
	if all := s.beside.Load(); all != nil {
		return *all
	}
	return nil
}

// memoryRows is the memory engine of the stores with [Spec.InMemory].
type memoryRows struct{ *memdb.DB }

func (m *memoryRows) applyAt(op string, _ *progress, size int, fill func(engine.Batch) error) error {
	return m.Apply(op, size, false, fill)
}

func (s *TaskStore) applyBeside(op string, next *progress, size int, fill func(engine.Batch, engine.Engine) error) error {
	for _, e := range s.besides() {
		if err := e.applyAt(op, next, size, func(b engine.Batch) error { return fill(b, e) }); err != nil {
			return s.db.Fail(op, err)
		}
	}
	return nil
}

// only gives a fill for a batch with rows of this store alone.
func (st *store) only(fill func(engine.Batch) error) func(engine.Batch, engine.Engine) error {
	return func(b engine.Batch, rows engine.Engine) error {
		if rows != st.rows {
			return nil
		}
		return fill(b)
	}
}

// recorded gives what the database records of p: nothing of stores in memory, which are
// empty after the next open.
func (s *TaskStore) recorded(p *progress) *progress {
	if s.memory == nil {
		return p
	}
	r := *p
	r.stores = maps.Clone(p.stores)
	for _, st := range s.registered() {
		if st.rows == engine.Engine(s.memory) {
			delete(r.stores, st.id)
		}
	}
	return &r
}

// forgetMoved takes out of p the stores whose rows c says to lie elsewhere than before, and
// gives those that left rows in the database: what was recorded of one place is not true
// of the other.
func (s *TaskStore) forgetMoved(p *progress, c *catalog) (left []uint32) {
	before := s.catalog.Load()
	p.stores = maps.Clone(p.stores)
	for id, spec := range c.specs {
		old, known := before.specs[id]
		if !known || old.place() == spec.place() {
			continue
		}
		delete(p.stores, id)
		if old.place() == inDatabase {
			left = append(left, id)
		}
	}
	return left
}
