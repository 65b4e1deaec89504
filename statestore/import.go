package statestore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
	"google.golang.org/protobuf/proto"
)

// Import names what was once taken over from elsewhere.
type Import struct {
	// Store is the store's name.
	Store string
	// Source is the file or database that its data or offset came from.
	Source string
	// Time is when, to the millisecond.
	Time time.Time
	// Data is when the other program wrote it last, to the millisecond; the zero time if that is not known.
	Data time.Time
}

// Imports gives what was ever taken over, oldest first. The caller owns it.
func (s *TaskStore) Imports() []Import {
	if p := s.imports.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

// Load puts records that were kept elsewhere into a store, in the form of its changelog,
// without an offset: the store is incomplete and its offset absent until
// [TaskStore.RecordImport] says where the data stands. After a crash in between, Clear and
// begin again. There must be no uncommitted writes ([ErrUncommitted]).
func (s *TaskStore) Load(name string, records []RestoreRecord) error {
	st, err := s.beginRestore("load", name)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if o := s.committed.Load().stores[st.id].offset; !o.IsAbsent() {
		return fmt.Errorf("load store %q of %s: it has an offset of its own, %v; Clear begins anew", name, s.dir, o)
	}
	p, err := s.nextProgress(nil)
	if err != nil {
		return fmt.Errorf("load store %q of %s: %w", name, s.dir, err)
	}
	p.stores[st.id] = p.stores[st.id].incomplete(Offset{})
	return s.applyRestored("load", st, p, records)
}

// RecordImport records, in one batch that is on the disk when it returns, that x was taken
// over, with what it said: the store's changelog offset (absent: the store's stays as it
// is) and source positions, which are merged. The store counts as partly restored at that
// offset. It is an error when x.Source was taken over for that store before: what a store
// was cleared of must not come back.
func (s *TaskStore) RecordImport(x Import, offset Offset, positions []Position) error {
	st, err := s.beginRestore("import", x.Store)
	if err == nil {
		err = (Progress{Positions: positions}).validate()
	}
	if err == nil {
		err = offset.valid()
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", x.Source, err)
	}
	imports := s.Imports()
	if i := slices.IndexFunc(imports, func(y Import) bool { return y.Store == x.Store && y.Source == x.Source }); i >= 0 {
		return fmt.Errorf("import %s into store %q of %s: that was done before, at %s", x.Source, x.Store, s.dir, imports[i].Time.UTC().Format(time.RFC3339))
	}
	imports = append(imports, x)
	record, err := encodeImports(imports)
	if err != nil {
		return fmt.Errorf("import %s: %w", x.Source, err)
	}
	err = s.recordBeside("import", keyImports, record, func(p *progress) {
		p.stores = maps.Clone(p.stores)
		if !offset.IsAbsent() {
			p.stores[st.id] = p.stores[st.id].incomplete(offset)
		}
		p.positions = mergePositions(p.positions, positions)
	})
	if err != nil {
		return err
	}
	s.imports.Store(&imports)
	return s.Sync()
}

func encodeImports(imports []Import) ([]byte, error) {
	m := &storepb.Imports{Version: importsVersion}
	for _, x := range imports {
		m.Imports = append(m.Imports, &storepb.Import{Store: x.Store, Source: x.Source, ImportedMs: timeMillis(x.Time), DataMs: timeMillis(x.Data)})
	}
	return proto.Marshal(m)
}

func decodeImports(b []byte) ([]Import, error) {
	var m storepb.Imports
	if err := unmarshal("imports", b, &m); err != nil {
		return nil, err
	}
	var imports []Import
	for _, x := range m.GetImports() {
		imports = append(imports, Import{Store: x.GetStore(), Source: x.GetSource(), Time: millisTime(x.GetImportedMs()), Data: millisTime(x.GetDataMs())})
	}
	return slices.Clip(imports), checkVersion("imports", m.GetVersion(), importsVersion)
}
