package processor

import (
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// StoreDef declares a store: its name, kind and types. The handles [KeyValueHandle] and
// [TimestampedKeyValueHandle] are StoreDefs. A handle is made once, usually as a package
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
}

// String gives the definition for messages, without the name.
func (d Definition) String() string {
	return fmt.Sprintf("%v[%s, %s]", d.Kind, d.KeySerde, d.ValueSerde)
}

// StoreContext is whatever gives access to a task's stores: the [Context] of a processor, or
// a task of the embedded form.
type StoreContext interface {
	// Stores gives the stores that may be used here. It is for handles; use Handle.In.
	Stores() *Stores
}

// Stores are the opened stores of a task, as far as one node is connected to them (P3).
type Stores struct {
	owner string // for messages: what they are connected to
	clock *recordClock
	open  []openStore
}

type openStore struct {
	def   Definition
	raw   *statestore.KeyValue
	typed any
}

// recordClock holds the timestamp of the record being processed, which plain stores write to
// their changelog.
type recordClock struct{ now time.Time }

// NewStores gives access to stores from outside a topology. raw opens a store by name; owner
// names who uses them. For the embedded form.
func NewStores(owner string, raw func(name string) (*statestore.KeyValue, error), defs ...StoreDef) (*Stores, error) {
	s := &Stores{owner: owner, clock: &recordClock{}}
	for _, d := range defs {
		def := d.Definition()
		kv, err := raw(def.Name)
		if err != nil {
			return nil, err
		}
		s.open = append(s.open, openStore{def: def, raw: kv})
	}
	return s, nil
}

// SetTimestamp tells the stores the timestamp of the record in process. For the embedded form.
func (s *Stores) SetTimestamp(t time.Time) { s.clock.now = t }

// view gives the typed view T of a store, made once.
func view[T any](s *Stores, def Definition, make func(*statestore.KeyValue, *recordClock, error) *T) *T {
	for i := range s.open {
		o := &s.open[i]
		if o.def.Name != def.Name {
			continue
		}
		if o.def != def {
			return make(nil, s.clock, fmt.Errorf("store %s is declared twice: as %v, connected to %s, and as %v, used there", def.Name, o.def, s.owner, def))
		}
		if v, ok := o.typed.(*T); ok {
			return v
		}
		v := make(o.raw, s.clock, nil)
		o.typed = v
		return v
	}
	return make(nil, s.clock, fmt.Errorf("store %s is %w to %s; name its handle where the processor is added", def.Name, ErrNotConnected, s.owner))
}

// KeyValueHandle declares a key-value store and opens it.
type KeyValueHandle[K, V any] struct {
	def Definition
	key serde.Serde[K]
	val serde.Serde[V]
}

// KeyValue declares a key-value store.
func KeyValue[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) KeyValueHandle[K, V] {
	return KeyValueHandle[K, V]{Definition{Name: name, Kind: statestore.KindKeyValue, KeySerde: key.Name(), ValueSerde: value.Name()}, key, value}
}

// Definition gives the declaration.
func (h KeyValueHandle[K, V]) Definition() Definition { return h.def }

// In opens the store where ctx stands. If it is not connected there, every call on it says so.
func (h KeyValueHandle[K, V]) In(ctx StoreContext) *KeyValueStore[K, V] {
	return view(ctx.Stores(), h.def, func(raw *statestore.KeyValue, c *recordClock, err error) *KeyValueStore[K, V] {
		return &KeyValueStore[K, V]{codec: codec[K, V]{raw: raw, clock: c, key: h.key, val: h.val, err: err, name: h.def.Name}}
	})
}

// Entry is one entry of a store.
type Entry[K, V any] struct {
	Key   K
	Value V
}

// KeyValueStore is a typed key-value store. Writes are seen at once by reads of the same
// task, and by everyone else when the task commits; they are never half committed.
type KeyValueStore[K, V any] struct{ codec[K, V] }

// Get reads a key.
func (s *KeyValueStore[K, V]) Get(key K) (value V, ok bool, err error) {
	value, _, ok, err = s.get(key)
	return value, ok, err
}

// Put writes a key. A nil value deletes it.
func (s *KeyValueStore[K, V]) Put(key K, value V) error {
	return s.put(key, value, s.clock.now)
}

// PutIfAbsent writes a key that has no value yet, and gives the value it had.
func (s *KeyValueStore[K, V]) PutIfAbsent(key K, value V) (had V, ok bool, err error) {
	if had, ok, err = s.Get(key); ok || err != nil {
		return had, ok, err
	}
	return had, false, s.Put(key, value)
}

// Delete removes a key, and gives the value it had.
func (s *KeyValueStore[K, V]) Delete(key K) (had V, ok bool, err error) {
	if had, ok, err = s.Get(key); !ok || err != nil {
		return had, ok, err
	}
	return had, true, s.delete(key, s.clock.now)
}

// All gives every entry, in the order of the keys' bytes, as the store was when the
// iteration began. An error ends it.
func (s *KeyValueStore[K, V]) All() iter.Seq2[Entry[K, V], error] { return s.entries(nil, nil) }

// Range gives the entries with from <= key < to, in the order of the keys' bytes.
func (s *KeyValueStore[K, V]) Range(from, to K) iter.Seq2[Entry[K, V], error] {
	return s.entries(&from, &to)
}

func (s *KeyValueStore[K, V]) entries(from, to *K) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		for e, err := range s.scan(from, to) {
			if !yield(Entry[K, V]{e.Key, e.Value}, err) || err != nil {
				return
			}
		}
	}
}
