package statestore

import (
	"errors"
	"fmt"
	"maps"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

// The values of a user's own store are changed through its Apply. Its rows and the record of how far
// the change is are not of one batch, as they are in the database, so there is no going on after a
// crash: the store is emptied, and restored from its changelog, whose records are changed on the way.
// What the database says of the version is on the disk before there are rows of that version, which the
// store syncs by itself.

// migrateOwn changes the values of a user's own store.
func (s *TaskStore) migrateOwn(st *store, from uint32) error {
	x := st.rows.(*externalRows)
	_, begun, err := s.db.Get("read schema change", schemaChangeKey(st.id), nil)
	if err != nil {
		return err
	}
	empty, err := isEmpty(x, st.id)
	if err != nil || empty {
		return err
	}
	if st.spec.Changelog == "" && begun {
		return fmt.Errorf("%w: nothing tells which version the values of store %q have in the program's own store, as the task's directory that did was lost: without a changelog they cannot be made anew; "+
			"remove them, or, if they are of version %d, start once without Spec.Migrate", ErrNoMigration, st.spec.Name, st.spec.SchemaVersion)
	}
	if st.spec.Changelog == "" {
		return fmt.Errorf("%w: store %q has version %d in the program's own store and %d in the program: without a changelog a crash in the middle of the change could not be made good; "+
			"give it another name, and write the values anew", ErrNoMigration, st.spec.Name, from, st.spec.SchemaVersion)
	}
	sp := s.committed.Load().stores[st.id]
	if nowhere := !sp.complete && sp.offset.IsAbsent(); begun || nowhere {
		return s.emptyOwn(x, begun)
	}
	if err := s.beginOwnMigration(st); err != nil {
		return err
	}
	m := rowMigration{s: s, st: st, parts: schemaParts{{nil, from}}}
	m.apply = func([]byte) error { return x.rewrite(m.batch) }
	lower, upper := storeBounds(st.id)
	if err := m.run(x, lower, upper); err != nil {
		return err
	}
	return x.Sync() // before the record says so
}

// unknownSchemas finds the program's own stores that are new to the database and can have values of older versions, as
// their task's directory may have been lost. In c they have none, and a change that was begun and not finished:
// the records of that, which are to be written with c, are the result.
func (s *TaskStore) unknownSchemas(c *catalog, specs []Spec) (begun []Row, err error) {
	before := s.catalog.Load()
	for _, p := range specs {
		id := c.ids[p.Name]
		if p.Store == nil || p.Migrate == nil || before.specs[id].external {
			continue
		}
		record, err := encodeSchemaChange(schemaParts{{nil, p.SchemaVersion}})
		if err != nil {
			return nil, err
		}
		spec := c.specs[id]
		spec.SchemaVersion = 0
		c.specs[id] = spec
		begun = append(begun, Row{schemaChangeKey(id), record})
	}
	return begun, nil
}

// beginOwnMigration records, on the disk, that from now on there may be values of both versions.
func (s *TaskStore) beginOwnMigration(st *store) error {
	record, err := encodeSchemaChange(schemaParts{{nil, st.spec.SchemaVersion}})
	if err != nil {
		return err
	}
	p := *s.committed.Load()
	err = s.apply("begin migration", &p, len(record), func(b engine.Batch) error {
		engine.Set(b, nil, schemaChangeKey(st.id), nil, record)
		return nil
	})
	if err != nil {
		return err
	}
	return s.db.Sync()
}

// emptyOwn takes a store back to its beginning. The record of it comes with the end of the migration.
func (s *TaskStore) emptyOwn(x *externalRows, begun bool) error {
	if begun {
		s.log.Warn("a change of the values of a store was not finished, or nothing says which schema version they have: the store is restored from the start of its changelog",
			"store", x.st.spec.Name)
	}
	p := *s.committed.Load()
	p.stores = maps.Clone(p.stores)
	p.stores[x.st.id] = storeProgress{}
	lower, upper := storeBounds(x.st.id)
	err := x.applyAt("clear", &p, 0, func(b engine.Batch) error { b.DeleteRange(lower, upper); return nil })
	if err = errors.Join(err, x.Sync()); err != nil {
		return err
	}
	durable := *s.durable.Load() // of which the store, and not the database, has just taken something back
	durable.stores = maps.Clone(durable.stores)
	durable.stores[x.st.id] = storeProgress{}
	s.foundOtherwise(&p, &durable)
	return nil
}

// rewrite replaces values; the store stands where it did.
func (x *externalRows) rewrite(rows []Row) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(rows) == 0 {
		return x.Err()
	}
	return x.call("migrate", func() error {
		if x.file == nil {
			return x.applyManaged(rows, x.at)
		}
		return x.applyWrapped(rows, x.at)
	})
}
