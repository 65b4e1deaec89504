package processor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// StoreDef declares a store: its name, kind and types. The handles ([KeyValueHandle],
// [WindowHandle] and so on) are StoreDefs. A handle is made once, usually as a package
// variable, and used to connect the store and to open it.
type StoreDef interface {
	// Definition gives the declaration without its types.
	Definition() Definition
}

// Definition is a [StoreDef] without its types.
type Definition struct {
	Name string
	Kind statestore.Kind
	// KeySerde and ValueSerde are the names of the serdes, kept in the store's catalog: data
	// that was written with one is never read with another.
	KeySerde, ValueSerde string
	// Retention is how long windows, sessions and old versions are kept, in whole milliseconds
	// of the store's own stream time.
	Retention time.Duration
	// WindowSize is the length of a window store's windows, in whole milliseconds.
	WindowSize time.Duration
	// RetainDuplicates: a window store keeps every value put for a key and start.
	RetainDuplicates bool
	// SchemaVersion is the version of what the values mean; 0 is not counted.
	SchemaVersion uint32
	// InMemory: the store is restored from its changelog at every start.
	InMemory bool
	// Unlogged: the store has no changelog, and is brought up to date by replaying the inputs.
	Unlogged bool

	// Those of KeptIn and Migrate; pointers, so that definitions can be compared.
	own     *StoreOpener
	migrate *statestore.Migration

	noKeySerde, noValueSerde bool // nil was given, which Build reports
}

// String gives the definition for messages, without the name.
func (d Definition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v[%s, %s]", d.Kind, d.KeySerde, d.ValueSerde)
	if d.WindowSize != 0 {
		fmt.Fprintf(&b, " of %v", d.WindowSize)
	}
	if d.Retention != 0 {
		fmt.Fprintf(&b, " kept %v", d.Retention)
	}
	if d.RetainDuplicates {
		b.WriteString(" with duplicates")
	}
	if d.SchemaVersion != 0 {
		fmt.Fprintf(&b, " of schema version %d", d.SchemaVersion)
	}
	if d.migrate != nil {
		b.WriteString(" with a migration")
	}
	if d.InMemory {
		b.WriteString(" in memory")
	}
	if d.Unlogged {
		b.WriteString(" without a changelog")
	}
	if d.own != nil {
		b.WriteString(" kept in a store of its own")
	}
	return b.String()
}

// Spec gives the definition as a task registers it; the changelog, and what [Definition.Open]
// gives, are the caller's to add.
func (d Definition) Spec() statestore.Spec {
	return statestore.Spec{Name: d.Name, Kind: d.Kind, KeySerde: d.KeySerde, ValueSerde: d.ValueSerde, SchemaVersion: d.SchemaVersion,
		Retention: d.Retention, WindowSize: d.WindowSize, RetainDuplicates: d.RetainDuplicates, InMemory: d.InMemory, Migrate: d.migrate}
}

// check reports everything that is wrong with the definition but its name.
func (d Definition) check() error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if d.noKeySerde {
		fail("the serde of its keys is nil")
	}
	if d.noValueSerde {
		fail("the serde of its values is nil")
	}
	for _, x := range []struct {
		what string
		d    time.Duration
	}{{"retention", d.Retention}, {"window size", d.WindowSize}} {
		if x.d < 0 || x.d%time.Millisecond != 0 {
			fail("its %s is %v: it must be whole milliseconds, and not negative", x.what, x.d)
		}
	}
	if d.migrate != nil && (d.migrate.Value == nil || d.SchemaVersion == 0) {
		fail("its migration has no function, or no SchemaVersion to migrate to")
	}
	if d.InMemory && d.own != nil {
		fail("it is to be in memory and in a store of its own")
	}
	if d.Unlogged && d.InMemory {
		fail("it is in memory and has no changelog: every start would replay the inputs from where the group began")
	}
	if d.Unlogged && d.own != nil {
		fail("it has no changelog and is kept in a store of its own: what a crash tears apart of the two could not be put together again")
	}
	switch d.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow:
		if d.WindowSize == 0 {
			fail("its window size is 0: windows have a length")
		}
		if d.Retention < d.WindowSize {
			fail("its retention %v is shorter than its windows, %v: a window would expire before it is over", d.Retention, d.WindowSize)
		}
	case statestore.KindSession:
		if d.Retention == 0 {
			fail("its retention is 0: every session would have expired")
		}
	}
	return errors.Join(errs...)
}

// CheckExactlyOnce tells why the store cannot be used under exactly-once, nil if it can.
func (d Definition) CheckExactlyOnce() error {
	if !d.Unlogged {
		return nil
	}
	return fmt.Errorf("store %s has no changelog, which is for at-least-once only: outputs under exactly-once belong to one state, and what a crash takes from this store is "+
		"made anew by processing the inputs again, which another order of partitions, the clock or another version of the code can bring to another state; give it a changelog", d.Name)
}

// declared is what all handles are made of: a definition and the serdes that it names.
type declared[K, V any] struct {
	def Definition
	key serde.Serde[K]
	val serde.Serde[V]
}

func declare[K, V any](kind statestore.Kind, name string, key serde.Serde[K], value serde.Serde[V]) declared[K, V] {
	d := Definition{Name: name, Kind: kind, noKeySerde: key == nil, noValueSerde: value == nil}
	if key != nil {
		d.KeySerde = key.Name()
	}
	if value != nil {
		d.ValueSerde = value.Name()
	}
	return declared[K, V]{d, key, value}
}

// Definition gives the declaration.
func (h declared[K, V]) Definition() Definition { return h.def }

func (h declared[K, V]) inMemory() declared[K, V] {
	h.def.InMemory = true
	return h
}

func (h declared[K, V]) unlogged() declared[K, V] {
	h.def.Unlogged = true
	return h
}

func (h declared[K, V]) keptIn(open StoreOpener) declared[K, V] {
	h.def.own = &open
	return h
}

func (h declared[K, V]) schemaVersion(version uint32) declared[K, V] {
	h.def.SchemaVersion = version
	return h
}
