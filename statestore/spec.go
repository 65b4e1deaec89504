package statestore

import (
	"errors"
	"fmt"

	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Kind is what a store keeps for a key. The numbers are on disk.
type Kind uint8

const (
	// KindKeyValue is a value for a key.
	KindKeyValue Kind = 1
	// KindTimestampedKeyValue is a value and the timestamp of the record that wrote it.
	KindTimestampedKeyValue Kind = 2
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case KindKeyValue:
		return "key-value"
	case KindTimestampedKeyValue:
		return "timestamped key-value"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Spec declares one store of a task.
type Spec struct {
	// Name is the store's name, unique in the task.
	Name string
	Kind Kind
	// Changelog is the topic that logs the store; "" = not logged.
	Changelog string
	// ChangelogID is the topic's id; zero = not known.
	ChangelogID [16]byte
	// KeySerde and ValueSerde name how keys and values are encoded, so that a store is not
	// read with others than it was written with; "" = not checked.
	KeySerde, ValueSerde string
}

func (p Spec) validate() error {
	if p.Name == "" {
		return errors.New("store without a name")
	}
	if p.Kind != KindKeyValue && p.Kind != KindTimestampedKeyValue {
		return fmt.Errorf("store %q has the unknown %v", p.Name, p.Kind)
	}
	return nil
}

// StoreState is what the database says about one store.
type StoreState struct {
	// Spec is the store as it was registered in this run, or as it was recorded.
	Spec Spec
	// Recorded is the store as the database knows it. Its changelog and changelog id differ
	// from Spec's when the topic is another one than the data came from; [TaskStore.Clear]
	// or [TaskStore.Adopt] make them equal.
	Recorded Spec
	// Registered tells whether the store was registered in this run.
	Registered bool
	// Offset is the committed changelog offset.
	Offset Offset
	// Complete: the store holds all that the commit with the id [TaskStore.CommitID] says.
	// It is false from the first restore or clear on until [TaskStore.Complete] (or, for
	// a store that was never restored, the first commit).
	Complete bool
	// Empty: the database has no key of the store.
	Empty bool
}

// store is a registered store.
type store struct {
	spec   Spec
	id     uint32 // in the database
	number uint32 // in the table
	prefix [storePrefixLen]byte
}

func (st *store) timestamped() bool { return st.spec.Kind == KindTimestampedKeyValue }

const maxStores = table.MaxStores
