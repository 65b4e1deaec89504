package statestore

import (
	"slices"
	"time"
)

// Metadata is what a task store says about itself.
type Metadata struct {
	// FormatVersion is the version of its layout.
	FormatVersion uint32
	// ID is the 16 bytes given to the database when it was created.
	ID [16]byte
	// Created is when that was.
	Created time.Time
	// CommitID is the id of the last commit.
	CommitID CommitID
	// Committed is the wall clock at the last commit, to the millisecond; zero: not known.
	Committed time.Time
	// StreamTime is the committed stream time in milliseconds, or [NoStreamTime].
	StreamTime int64
	// Positions are the committed source positions by topic and partition.
	Positions []Position
	// Stores are all that the database knows, in the order in which they were first registered.
	Stores []StoreMetadata
	// Owner is who had the task last.
	Owner Owner
	// Imports is what was ever taken over from elsewhere, oldest first.
	Imports []Import
}

// StoreMetadata is what the database says about one store.
type StoreMetadata struct {
	// Spec is the store as it was recorded.
	Spec Spec
	// Offset is the committed changelog offset, which is the durable one too: the task store
	// is not running.
	Offset Offset
	// Complete: the store holds all that the commit CommitID says.
	Complete bool
	// Replaying, of a store without a changelog that is not complete: it holds what the records
	// before the task's positions wrote.
	Replaying bool
	// Forgotten: other stores were registered when the last batch was written, and this one was
	// not. Its data is of an unknown time.
	Forgotten bool
	// External: the program keeps the rows in a store of its own ([Spec.Store]); the database has none.
	External bool
	// Migrating: a migration of the values to a newer schema version was begun and not finished.
	// The next Register goes on with it.
	Migrating bool
}

// Metadata tells what the task store says about itself. The caller owns it.
func (v *View) Metadata() Metadata {
	m := Metadata{
		FormatVersion: v.meta.format.GetVersion(), ID: v.opened.ID, Created: millisTime(v.meta.format.GetCreatedMs()),
		CommitID: v.meta.progress.id, Committed: millisTime(v.meta.progress.committed), StreamTime: v.meta.progress.streamTime,
		Positions: slices.Clone(v.meta.progress.positions), Owner: v.meta.owner, Imports: slices.Clone(v.meta.imports),
	}
	for _, id := range v.meta.catalog.sortedIDs() {
		sp, ok := v.meta.progress.stores[id]
		m.Stores = append(m.Stores, StoreMetadata{Spec: v.meta.catalog.specs[id], External: v.meta.catalog.specs[id].external, Offset: sp.offset, Complete: sp.complete, Replaying: sp.replaying,
			Forgotten: !ok && len(v.meta.progress.stores) > 0, Migrating: v.meta.migrating[id]})
	}
	return m
}
