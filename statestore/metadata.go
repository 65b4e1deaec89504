package statestore

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/storepb"
)

// metadata is the content of the metadata records.
type metadata struct {
	format   *storepb.Format
	catalog  *catalog
	progress *progress
	owner    Owner
	imports  []Import
	// migrating has the stores whose values are being changed to a newer schema version.
	migrating map[uint32]bool
}

// readMetadata decodes the metadata records and checks each against the others.
func readMetadata(rows engine.Reader) (*metadata, error) {
	m := &metadata{
		migrating: map[uint32]bool{},
		catalog:   &catalog{nextID: 1, ids: map[string]uint32{}, specs: map[uint32]Spec{}},
		progress:  &progress{streamTime: NoStreamTime, stores: map[uint32]storeProgress{}},
	}
	b, ok, err := rows.Get("read metadata", keyFormat, nil)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: the database has no format record", ErrCorrupt)
	}
	// The format comes first: a newer one may keep the others elsewhere.
	if m.format, err = decodeFormat(b); err != nil {
		return nil, err
	}
	for _, record := range []struct {
		key    []byte
		decode func([]byte) error
	}{
		{keyCatalog, func(b []byte) (err error) { m.catalog, err = decodeCatalog(b); return err }},
		{keyCommit, func(b []byte) (err error) { m.progress, err = decodeCommit(b); return err }},
		{keyOwner, func(b []byte) (err error) { m.owner, err = decodeOwner(b); return err }},
		{keyImports, func(b []byte) (err error) { m.imports, err = decodeImports(b); return err }},
	} {
		b, ok, err := rows.Get("read metadata", record.key, nil)
		if err == nil && ok {
			err = record.decode(b)
		}
		if err != nil {
			return nil, err
		}
	}
	for id := range m.catalog.specs {
		b, ok, err := rows.Get("read metadata", schemaChangeKey(id), nil)
		if err == nil && ok {
			_, err = decodeSchemaChange(b)
			m.migrating[id] = true
		}
		if err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// isMetaKey tells whether the key is that of a metadata record.
func isMetaKey(key []byte) bool {
	for _, k := range [][]byte{keyFormat, keyCatalog, keyCommit, keyOwner, keyImports} {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return len(key) == len(keySchemaChange)+4 && bytes.HasPrefix(key, keySchemaChange)
}

func (m *metadata) check() error {
	var errs []error
	for id := range m.progress.stores {
		if _, ok := m.catalog.specs[id]; !ok {
			errs = append(errs, fmt.Errorf("%w: commit record: store %d is not in the catalog", ErrCorrupt, id))
		}
	}
	return errors.Join(errs...)
}
