package statestore

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"github.com/tidemark-streams/tidemark/statestore/internal/table"
)

// Kind is what a store keeps for a key. The numbers are on disk.
type Kind uint8

const (
	// KindKeyValue is a value for a key.
	KindKeyValue Kind = 1
	// KindTimestampedKeyValue is a value and the timestamp of the record that wrote it.
	KindTimestampedKeyValue Kind = 2
	// KindWindow is a value for a key and the start of a window.
	KindWindow Kind = 3
	// KindTimestampedWindow is a window's value and the timestamp of the record that wrote it.
	KindTimestampedWindow Kind = 4
	// KindSession is a value for a key and a session's start and end.
	KindSession Kind = 5
	// KindVersioned is a key's values, each valid from a timestamp on.
	KindVersioned Kind = 6
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case KindKeyValue:
		return "key-value"
	case KindTimestampedKeyValue:
		return "timestamped key-value"
	case KindWindow:
		return "window"
	case KindTimestampedWindow:
		return "timestamped window"
	case KindSession:
		return "session"
	case KindVersioned:
		return "versioned"
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
	// SchemaVersion is the version of what the values mean, as the program counts it; 0 = not
	// counted. A store with values of another version is migrated, or refused.
	SchemaVersion uint32
	// Migrate changes values of older versions; nil = they are refused.
	Migrate *Migration
	// Retention is how long a window or session is kept, and how far back versions go, by the
	// store's own stream time. Whole milliseconds.
	Retention time.Duration
	// WindowSize is the length of a window store's windows. Whole milliseconds.
	WindowSize time.Duration
	// RetainDuplicates keeps every value put for a key and window start, instead of the last.
	RetainDuplicates bool
	// InMemory keeps the store in memory: it is empty at every open, and restored whole from
	// its changelog, which it must have: without one, a restart would lose the store and go on
	// at the task's committed offsets.
	InMemory bool
	// Store keeps the store's rows, instead of the task's database; nil = the database. It
	// belongs to the task store from Register on, also when that fails: Close closes it. See
	// [StateStore].
	Store StateStore
	// ChangelogPartition is the changelog's partition, for a Store that does not manage its
	// offsets itself.
	ChangelogPartition int32

	external  bool  // as recorded: it had a Store
	segmentMS int64 // as recorded: the segment interval of a kind whose entries expire; 0 = that of a new store
}

// place is where the rows of a store lie.
type place uint8

const (
	inDatabase place = iota
	inMemory
	external
)

func (p Spec) place() place {
	switch {
	case p.Store != nil || p.external:
		return external
	case p.InMemory:
		return inMemory
	}
	return inDatabase
}

// recorded is what the catalog keeps of a spec.
func (p Spec) recorded() Spec {
	p.external = p.place() == external
	p.Store, p.ChangelogPartition, p.Migrate = nil, 0, nil
	if p.segmentMS == 0 {
		p.segmentMS = p.segmentMillis()
	}
	return p
}

func (p Spec) validate() error {
	if err := p.validateName(); err != nil {
		return err
	}
	if p.Migrate != nil && (p.Migrate.Value == nil || p.SchemaVersion == 0) {
		return fmt.Errorf("store %q has a migration without a function or without a schema version to migrate to", p.Name)
	}
	if p.InMemory && p.Store != nil {
		return fmt.Errorf("store %q is to be in memory and in a store of its own", p.Name)
	}
	if p.InMemory && p.Changelog == "" {
		return fmt.Errorf("store %q is in memory and has no changelog: a restart would lose it, and go on at the task's offsets; give it a changelog", p.Name)
	}
	if p.Kind < KindKeyValue || p.Kind > KindVersioned {
		return fmt.Errorf("store %q has the unknown %v", p.Name, p.Kind)
	}
	return p.validateTimes()
}

// maxOwnName leaves room for .checkpoint_ before the name, and behind it for what names a file that is set aside.
const maxOwnName = 200

// validateName: the name of a store of the user's own becomes that of a file, .checkpoint_<store>. No store may have
// one that leads out of the directory, so that each can be given a store of its own.
func (p Spec) validateName() error {
	switch {
	case p.Name == "":
		return errors.New("store without a name")
	case p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/\\") || strings.ContainsFunc(p.Name, unicode.IsControl):
		return fmt.Errorf("store %q: a name cannot be . or .., or contain a slash, a backslash or a control character: there can be a file named after the store", p.Name)
	case p.Store == nil:
		return nil
	case len(p.Name) > maxOwnName:
		return fmt.Errorf("store %.20q...: the name has %d bytes; that of a store of the program's own can have %d, as a file is named after it", p.Name, len(p.Name), maxOwnName)
	case strings.HasSuffix(p.Name, ".tmp") || offsetfile.IsSetAside(p.Name):
		return fmt.Errorf("store %q: its file .checkpoint_%s would look like one that is being written or was set aside: give it another name", p.Name, p.Name)
	}
	return nil
}

func (p Spec) validateTimes() error {
	var errs []error
	window := p.Kind == KindWindow || p.Kind == KindTimestampedWindow
	if p.Retention < 0 || p.Retention%time.Millisecond != 0 {
		errs = append(errs, fmt.Errorf("store %q: retention %v is negative or not in whole milliseconds", p.Name, p.Retention))
	}
	if p.WindowSize < 0 || p.WindowSize%time.Millisecond != 0 {
		errs = append(errs, fmt.Errorf("store %q: window size %v is negative or not in whole milliseconds", p.Name, p.WindowSize))
	}
	if window && p.Retention < p.WindowSize {
		errs = append(errs, fmt.Errorf("store %q: retention %v is shorter than the windows, %v: they would expire before they end", p.Name, p.Retention, p.WindowSize))
	}
	if p.RetainDuplicates && !window {
		errs = append(errs, fmt.Errorf("store %q: a %v store cannot retain duplicates, only a window store can", p.Name, p.Kind))
	}
	return errors.Join(errs...)
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
	// Replaying, of a store without a changelog that is not complete: it holds what the records
	// before the task's positions wrote ([Progress].Replaying).
	Replaying bool
	// Empty: the database has no key of the store.
	Empty bool
}

// store is a registered store.
type store struct {
	spec   Spec
	id     uint32 // in the database
	number uint32 // in the table
	prefix [storePrefixLen]byte
	rows   engine.Engine // that keeps its rows
	muted  bool          // writes are ignored: see Mute; the owner's

	// Of a kind whose entries expire; the owner's.
	layout    *kinds.Layout
	clock     kinds.Clock // that of the running interval
	expired   uint64      // the rows of the segments before were deleted in this run
	window    *Window
	session   *Session
	versioned *Versioned

	// See cachedAfter.
	counted     bool
	drops       int
	cachedAfter int64
}

// timestamped tells whether rows begin with a timestamp in the database. (That of a version
// is when it becomes valid.)
func (st *store) timestamped() bool {
	return st.spec.Kind == KindTimestampedKeyValue || st.spec.Kind == KindTimestampedWindow || st.spec.Kind == KindVersioned
}

const maxStores = table.MaxStores
