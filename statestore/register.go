package statestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// Register declares the stores of the task: all of them, once, before anything else is
// done with the store. A new one gets its place in the database. One that is there
// already must be of the same kind and serdes ([ErrSpecChanged]); a changelog that is
// another one than recorded is not an error here: [TaskStore.Stores] shows both.
//
// A store that the database knows and that is not registered keeps its data, but the next
// commit forgets its offset.
func (s *TaskStore) Register(specs ...Spec) error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.stores.Load() != nil {
		return fmt.Errorf("register stores in %s: they are registered already; all must be given at once", s.dir)
	}
	s.write.Lock()
	defer s.write.Unlock()
	for _, p := range specs {
		if p.Store != nil { // ours to close from here on
			s.externals = append(s.externals, &externalRows{s: s, st: &store{spec: p}, store: p.Store})
		}
	}
	c, changed, err := s.enter(specs)
	if err != nil {
		return fmt.Errorf("register stores in %s: %w", s.dir, err)
	}
	if changed {
		begun, err := s.unknownSchemas(c, specs)
		if err == nil {
			err = s.writeCatalog(c, begun...)
		}
		if err == nil && len(s.externals) > 0 {
			err = s.db.Sync() // before there are rows in them that it tells of
		}
		if err != nil {
			return err
		}
	}
	stores := make([]*store, len(specs))
	for i, p := range specs {
		id := c.ids[p.Name]
		stores[i] = &store{spec: p, id: id, number: uint32(i), prefix: storePrefix(id)}
		if err := s.openRows(stores[i]); err != nil {
			return fmt.Errorf("register stores in %s: %w", s.dir, err)
		}
		s.equip(stores[i], c.specs[id].segmentMS)
	}
	if err := s.migrate(stores); err != nil {
		return fmt.Errorf("register stores in %s: %w", s.dir, err)
	}
	s.stores.Store(&stores)
	s.resetClocks()
	if s.o.Engine != Memory && s.durable.Load().seq < s.committed.Load().seq {
		s.sync.arm() // one that is under way may not count: see foundOtherwise
	}
	return s.findComplete()
}

// enter gives the catalog with the specs in it, and whether that changes it.
func (s *TaskStore) enter(specs []Spec) (c *catalog, changed bool, err error) {
	c = s.catalog.Load().clone()
	if len(specs) > maxStores {
		return nil, false, fmt.Errorf("%d stores; a task can have %d", len(specs), maxStores)
	}
	var errs []error
	for i, p := range specs {
		if err := p.validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(specs[:i], func(q Spec) bool { return q.Name == p.Name }) {
			errs = append(errs, fmt.Errorf("store %q is declared twice", p.Name))
			continue
		}
		id, known := c.ids[p.Name]
		if !known {
			if c.nextID > maxStoreID {
				return nil, false, errors.New("no store ids left")
			}
			id, c.nextID = c.nextID, c.nextID+1
			c.ids[p.Name], c.specs[id] = id, p.recorded()
			changed = true
			continue
		}
		entered, err := reconcile(c.specs[id], p)
		if err != nil {
			errs = append(errs, err)
		}
		changed = changed || entered != c.specs[id]
		c.specs[id] = entered
	}
	return c, changed, errors.Join(errs...)
}

// reconcile gives what is to be recorded of a store that was recorded as old and is
// declared as p. The changelog of old stays: it is where the data came from.
func reconcile(old, p Spec) (Spec, error) {
	schema, migrates, err := schemaOf(old.SchemaVersion, p)
	if err != nil {
		return old, err
	}
	old.SchemaVersion = schema
	if old.Kind != p.Kind || differ(old.KeySerde, p.KeySerde) || !migrates && differ(old.ValueSerde, p.ValueSerde) {
		return old, fmt.Errorf("%w: store %q is a %v store with serdes (%s, %s) in the database and a %v store with (%s, %s) in the program; "+
			"give it another name, or remove the directory so that it is restored from its changelog",
			ErrSpecChanged, p.Name, old.Kind, shown(old.KeySerde), shown(old.ValueSerde), p.Kind, shown(p.KeySerde), shown(p.ValueSerde))
	}
	if old.RetainDuplicates != p.RetainDuplicates {
		return old, fmt.Errorf("%w: store %q retains duplicates in the database (%t) or in the program (%t), not in both; "+
			"give it another name, or remove the directory so that it is restored from its changelog", ErrSpecChanged, p.Name, old.RetainDuplicates, p.RetainDuplicates)
	}
	if err := keepsSegments(old, p); err != nil {
		return old, err
	}
	old.Retention, old.WindowSize = p.Retention, p.WindowSize
	old.InMemory, old.external = p.InMemory, p.Store != nil
	if old.KeySerde == "" {
		old.KeySerde = p.KeySerde
	}
	if old.ValueSerde == "" {
		old.ValueSerde = p.ValueSerde
	}
	if old.Changelog == p.Changelog && old.ChangelogID == [16]byte{} {
		old.ChangelogID = p.ChangelogID
	}
	return old, nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

func shown(serde string) string {
	if serde == "" {
		return "not said"
	}
	return serde
}

// writeCatalog is called with s.write held. beside is other metadata for the same batch.
func (s *TaskStore) writeCatalog(c *catalog, beside ...Row) error {
	b, err := encodeCatalog(c)
	if err != nil {
		return fmt.Errorf("encode catalog of %s: %w", s.dir, err)
	}
	p := *s.committed.Load()
	moved := s.forgetMoved(&p, c)
	err = s.apply("write catalog", &p, len(b), func(batch engine.Batch) error {
		engine.Set(batch, nil, keyCatalog, nil, b)
		for _, r := range beside {
			engine.Set(batch, nil, r.Key, nil, r.Value)
		}
		for _, id := range moved {
			batch.DeleteRange(storeBounds(id))
		}
		s.deleteShortened(batch, c)
		return nil
	})
	if err != nil {
		return err
	}
	s.catalog.Store(c)
	return nil
}

// deleteShortened deletes what has expired by the retentions of c that are shorter than before.
func (s *TaskStore) deleteShortened(batch engine.Batch, c *catalog) {
	before, p := s.catalog.Load(), s.committed.Load()
	for id, spec := range c.specs {
		old, known := before.specs[id]
		if !known || !spec.Kind.expiring() || spec.place() != inDatabase || spec.Retention >= old.Retention {
			continue
		}
		clock := p.stores[id].clock
		if end := spec.layout().Expired(&clock); end != nil {
			st := store{id: id, prefix: storePrefix(id)}
			batch.DeleteRange(st.bounds(nil, end))
		}
	}
}

// findComplete makes complete in the table what is empty in the database: then a key that
// the table does not know need not be looked for. The table must be empty.
func (s *TaskStore) findComplete() error {
	for _, st := range s.registered() {
		empty, err := isEmpty(st.rows, st.id)
		if err != nil {
			return err
		}
		s.table.SetComplete(st.number, empty)
	}
	return nil
}

// Adopt records that the store's data belongs to the changelog with which it was
// registered, whatever was recorded before: after the data was written to a new topic.
func (s *TaskStore) Adopt(name string) error {
	if err := s.usable(); err != nil {
		return err
	}
	st, err := s.find(name)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	c := s.catalog.Load().clone()
	adopted := st.spec
	adopted.segmentMS = c.specs[st.id].segmentMS // that of the data
	c.specs[st.id] = adopted.recorded()
	return s.writeCatalog(c)
}

func (s *TaskStore) find(name string) (*store, error) {
	for _, st := range s.registered() {
		if st.spec.Name == name {
			return st, nil
		}
	}
	return nil, fmt.Errorf("task store %s: store %q was not registered", s.dir, name)
}
