package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
	"google.golang.org/protobuf/proto"
)

// defaultMigrateBatchBytes is about how much one batch of a migration rewrites.
const defaultMigrateBatchBytes = 4 << 20

// schemaParts says which rows of a store have which schema version, in the order of the
// rows: one part, but for while a migration goes on. A migration that was killed and that
// another one, to a still newer version, follows leaves three, and so on.
type schemaParts []schemaPart

type schemaPart struct {
	end    []byte // row before which the part ends; nil = the end of the store
	schema uint32
}

// advance gives the parts when everything before the row end has the version; nil: all.
func (p schemaParts) advance(end []byte, version uint32) schemaParts {
	if end == nil {
		return schemaParts{{nil, version}}
	}
	for len(p) > 0 && p[0].end != nil && string(p[0].end) <= string(end) {
		p = p[1:]
	}
	return append(schemaParts{{end, version}}, p...)
}

// at gives the version of a row.
func (p schemaParts) at(row []byte) uint32 {
	for _, x := range p {
		if x.end == nil || string(row) < string(x.end) {
			return x.schema
		}
	}
	return p[len(p)-1].schema
}

func schemaChangeKey(id uint32) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(keySchemaChange), id)
}

func encodeSchemaChange(parts schemaParts) ([]byte, error) {
	m := &storepb.SchemaChange{Version: schemaChangeVersion}
	for _, p := range parts {
		m.Parts = append(m.Parts, &storepb.SchemaPart{End: p.end, Schema: p.schema})
	}
	return proto.Marshal(m)
}

func decodeSchemaChange(b []byte) (parts schemaParts, err error) {
	var m storepb.SchemaChange
	if err := unmarshal("schema change", b, &m); err != nil {
		return nil, err
	}
	if err := checkVersion("schema change", m.GetVersion(), schemaChangeVersion); err != nil {
		return nil, err
	}
	var last []byte
	for i, p := range m.GetParts() {
		end := p.GetEnd()
		if len(end) == 0 {
			end = nil
		}
		if (end == nil) != (i == len(m.GetParts())-1) || end != nil && string(end) <= string(last) {
			return nil, fmt.Errorf("%w: schema change record: part %d ends at %x", ErrCorrupt, i, end)
		}
		last = end
		parts = append(parts, schemaPart{end, p.GetSchema()})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: schema change record without parts", ErrCorrupt)
	}
	return parts, nil
}

// migrate changes the values of the stores that need it. The stores are made already;
// s.write is held.
func (s *TaskStore) migrate(stores []*store) error {
	for _, st := range stores {
		from := s.catalog.Load().specs[st.id].SchemaVersion
		parts, err := s.readSchemaParts(st, from)
		if err != nil {
			return err
		}
		if from == st.spec.SchemaVersion {
			continue
		}
		switch st.spec.place() {
		case inDatabase:
			err = s.migrateStore(st, parts)
		case external:
			err = s.migrateOwn(st, from)
		case inMemory: // and empty
		}
		if err != nil {
			return err
		}
		if err := s.endMigration(st); err != nil {
			return err
		}
	}
	return nil
}

// readSchemaParts gives the schema versions of the store's rows, and refuses newer ones:
// what a migration that was not finished has changed already is newer than recorded.
func (s *TaskStore) readSchemaParts(st *store, recorded uint32) (schemaParts, error) {
	record, ok, err := s.db.Get("read schema change", schemaChangeKey(st.id), nil)
	if err != nil || !ok {
		return schemaParts{{nil, recorded}}, err
	}
	parts, err := decodeSchemaChange(record)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.schema > st.spec.SchemaVersion {
			return nil, fmt.Errorf("%w: a migration of store %q to version %d was begun and not finished, and the program has version %d; run the newer program",
				ErrNewerSchema, st.spec.Name, p.schema, st.spec.SchemaVersion)
		}
	}
	return parts, nil
}

func (s *TaskStore) migrateStore(st *store, parts schemaParts) error {
	lower, upper := storeBounds(st.id)
	if parts[0].schema == st.spec.SchemaVersion {
		lower = append(lower, parts[0].end...)
	}
	m := rowMigration{s: s, st: st, parts: parts}
	m.apply = m.applyToDatabase
	return m.run(s.db, lower, upper)
}

// migrationLogInterval is how often a migration that takes long says how far it is.
const migrationLogInterval = 10 * time.Second

// rowMigration is the rewriting of one store's rows.
type rowMigration struct {
	s     *TaskStore
	st    *store
	parts schemaParts
	rows  int64
	batch []Row
	bytes int
	apply func(end []byte) error // writes the batch
	told  time.Time              // when the log was last told how far it is
}

// run changes the rows lower <= row < upper.
func (m *rowMigration) run(rows engine.Reader, lower, upper []byte) error {
	begun := time.Now()
	m.told = begun
	log := m.s.log.With("store", m.st.spec.Name, "from", m.parts[len(m.parts)-1].schema, "to", m.st.spec.SchemaVersion)
	log.Info("changing the values of a store to a newer schema version")
	it, err := rows.NewIter("migrate", lower, upper)
	if err != nil {
		return err
	}
	if err := errors.Join(m.all(it), it.Close()); err != nil {
		return err
	}
	log.Info("changed the values of a store", "rows", m.rows, "took", time.Since(begun))
	return nil
}

func (m *rowMigration) all(it engine.Iter) error {
	for ok := it.First(); ok; ok = it.Next() {
		row := Row{Key: it.Key()[storePrefixLen:], Value: it.Value()}
		if err := m.change(row); err != nil {
			return err
		}
		m.rows++
		if m.bytes >= m.s.o.migrateBatchBytes {
			if err := m.write(append(slices.Clone(row.Key), 0)); err != nil {
				return err
			}
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	return m.write(nil)
}

// change puts the row's new form into the batch.
func (m *rowMigration) change(row Row) error {
	from := m.parts.at(row.Key)
	if from == m.st.spec.SchemaVersion {
		return nil
	}
	e, holds, err := decodeRow(m.st.spec.Kind, row)
	if err != nil {
		return fmt.Errorf("migrate store %q: %w", m.st.spec.Name, err)
	}
	if !holds {
		return nil
	}
	value, err := m.st.present(from, e.Key, e.Value)
	if err != nil {
		return err
	}
	head := row.Value[:len(row.Value)-len(e.Value)] // the value is always the last part of a row's
	changed := Row{Key: slices.Clone(row.Key), Value: slices.Concat(head, value)}
	m.batch = append(m.batch, changed)
	m.bytes += len(changed.Key) + len(changed.Value)
	return nil
}

// write applies the batch: after it, every row before end has the new version; nil: all.
func (m *rowMigration) write(end []byte) error {
	if err := m.apply(end); err != nil {
		return err
	}
	m.batch, m.bytes = m.batch[:0], 0
	if progress := m.st.spec.Migrate.Progress; progress != nil {
		progress(m.st.spec.Name, m.rows)
	}
	if now := time.Now(); now.Sub(m.told) >= migrationLogInterval {
		m.told = now
		m.s.log.Info("still changing the values of a store", "store", m.st.spec.Name, "rows", m.rows)
	}
	return nil
}

func (m *rowMigration) applyToDatabase(end []byte) error {
	parts := m.parts.advance(end, m.st.spec.SchemaVersion)
	record, err := encodeSchemaChange(parts)
	if err != nil {
		return err
	}
	p := *m.s.committed.Load()
	err = m.s.apply("migrate", &p, m.bytes+len(m.batch)*(storePrefixLen+entryOverhead)+len(record), func(b engine.Batch) error {
		for _, r := range m.batch {
			engine.Set(b, m.st.prefix[:], r.Key, nil, r.Value)
		}
		engine.Set(b, nil, schemaChangeKey(m.st.id), nil, record)
		return nil
	})
	if err == nil {
		m.parts = parts
	}
	return err
}

// endMigration records the new version, in the batch that ends the change.
func (s *TaskStore) endMigration(st *store) error {
	c := s.catalog.Load().clone()
	spec := c.specs[st.id]
	spec.SchemaVersion = st.spec.SchemaVersion
	if st.spec.ValueSerde != "" {
		spec.ValueSerde = st.spec.ValueSerde
	}
	c.specs[st.id] = spec
	record, err := encodeCatalog(c)
	if err != nil {
		return fmt.Errorf("encode catalog of %s: %w", s.dir, err)
	}
	p := *s.committed.Load()
	err = s.apply("end migration", &p, len(record), func(b engine.Batch) error {
		engine.Set(b, nil, keyCatalog, nil, record)
		engine.Delete(b, nil, schemaChangeKey(st.id))
		return nil
	})
	if err == nil && st.spec.place() == external {
		err = s.db.Sync()
	}
	if err == nil {
		s.catalog.Store(c)
	}
	return err
}
