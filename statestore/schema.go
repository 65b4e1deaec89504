package statestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

var (
	// ErrNewerSchema is returned by Register and Restore for values of a schema version that is
	// newer than the program's.
	ErrNewerSchema = errors.New("store has values of a newer schema version")
	// ErrNoMigration is returned by Register and Restore for values of an older schema version
	// when the program has nothing to change them with.
	ErrNoMigration = errors.New("store has values of an older schema version")
)

// Migration changes values of older schema versions into those of Spec.SchemaVersion.
//
// It is used twice. [TaskStore.Register] changes all values of the store before it returns,
// a batch at a time; killed in between, the next one goes on where it was. (A [Spec.Store] it
// changes too; killed in between, that is emptied, and restored from its changelog. One without a
// changelog is refused.)
// [TaskStore.Restore] changes those records of a changelog that were written with an older
// version. The changelog itself is not written anew: every record says which version it has
// ([RestoreRecord.Schema]). So a migration must stay in the program as long as the changelog
// can hold a value of the versions that it takes, which for a key that is never written
// again is for ever.
type Migration struct {
	// Value gives the value of the present version for one of version from. key is the user's.
	// Both slices are valid during the call; what it returns is copied. It must give the same
	// for the same arguments, and not nil: a migration changes values and removes none.
	Value func(from uint32, key, value []byte) ([]byte, error)
	// Progress, if not nil, is called during Register after each batch, with the number of rows
	// looked at so far.
	Progress func(store string, rows int64)
}

// schemaOf gives the schema version to record of a store that has the version old and is
// declared as p, and whether its values must be changed first. Version 0 is that of a
// program that did not count; version 1 takes its values as they are, unless there is a
// migration.
func schemaOf(old uint32, p Spec) (version uint32, change bool, err error) {
	switch {
	case old == p.SchemaVersion:
		return old, false, nil
	case old > p.SchemaVersion:
		return old, false, fmt.Errorf("%w: store %q has version %d in the database and %d in the program; run the newer program",
			ErrNewerSchema, p.Name, old, p.SchemaVersion)
	case p.Migrate != nil:
		return old, true, nil
	case old == 0 && p.SchemaVersion == 1:
		return 1, false, nil
	}
	return old, false, fmt.Errorf("%w: store %q has version %d in the database and %d in the program, which has no migration for it; "+
		"give it one (Spec.Migrate), or remove the store's data and changelog", ErrNoMigration, p.Name, old, p.SchemaVersion)
}

// present gives a value of the store's schema version for one of version from.
func (st *store) present(from uint32, key, value []byte) ([]byte, error) {
	v, err := st.spec.Migrate.Value(from, key, value)
	if err == nil && v == nil {
		err = errors.New("it gave nil")
	}
	if err != nil {
		return nil, fmt.Errorf("migrate store %q: value of key %.64x from schema version %d to %d: %w", st.spec.Name, key, from, st.spec.SchemaVersion, err)
	}
	return v, nil
}

// presentRecords gives the records with values of the store's schema version. It copies the
// slice only if it must.
func (st *store) presentRecords(records []RestoreRecord) ([]RestoreRecord, error) {
	copied := false
	for i := range records {
		r := &records[i]
		version, change, err := schemaOf(r.Schema, st.spec)
		if err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i+1, len(records), err)
		}
		if !change || r.Value == nil {
			continue
		}
		key, err := st.userKey(r.Key)
		if err != nil {
			continue // whoever takes the record apart says what is wrong with it
		}
		value, err := st.present(version, key, r.Value)
		if err != nil {
			return nil, err
		}
		if !copied {
			records, copied = slices.Clone(records), true
		}
		records[i].Value = slices.Clone(value)
	}
	return records, nil
}

// userKey gives the user's part of a changelog's key.
func (st *store) userKey(key []byte) (user []byte, err error) {
	switch st.spec.Kind {
	case KindWindow, KindTimestampedWindow:
		user, _, _, err = kinds.DecodeWindow(key)
	case KindSession:
		user, _, _, err = kinds.DecodeSession(key)
	default:
		user = key
	}
	return user, err
}
