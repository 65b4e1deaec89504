package processor

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// ErrNotConnected marks the use of a store from a processor it was not connected to.
var ErrNotConnected = errors.New("not connected")

// TaskStores are the stores of a task, opened by name. A [*statestore.TaskStore] is one.
type TaskStores interface {
	// KeyValue gives a key-value store, plain or timestamped. Here and below a store of another
	// kind, or of a name that is not known, is an error.
	KeyValue(name string) (*statestore.KeyValue, error)
	// Window gives a window store, plain or timestamped.
	Window(name string) (*statestore.Window, error)
	// Session gives a session store.
	Session(name string) (*statestore.Session, error)
	// Versioned gives a versioned store.
	Versioned(name string) (*statestore.Versioned, error)
}

// StoreContext is whatever gives access to a task's stores: the [Context] of a processor, or
// a task of the embedded form.
type StoreContext interface {
	// Stores gives the stores that may be used here. It is for handles; use Handle.In.
	Stores() *Stores
}

// Stores are the opened stores of a task, as far as one node is connected to them (P3).
type Stores struct {
	owner   string // for messages: what they are connected to
	clock   *recordClock
	dropped func(reason string) // counts writes that came too late
	open    []openStore
	guard   func() error // see Guarded; nil allows everything
}

type openStore struct {
	def   Definition
	raw   any // what TaskStores gave, by kind
	typed any
}

// recordClock holds the timestamp of the record being processed, in milliseconds, which plain
// stores write to their changelog. (Not a time.Time: that has a pointer, and each write of a pointer
// costs much more while the garbage collector marks.)
type recordClock struct{ now int64 }

// NewStores gives access to stores from outside a topology. owner names who uses them, for
// messages. For the embedded form.
func NewStores(owner string, from TaskStores, defs ...StoreDef) (*Stores, error) {
	s := &Stores{owner: owner, clock: &recordClock{time.Time{}.UnixMilli()}, dropped: func(string) {}}
	for _, d := range defs {
		def := d.Definition()
		if err := def.check(); err != nil {
			return nil, fmt.Errorf("store %s: %w", def.Name, err)
		}
		if err := s.add(from, def); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// SetTimestamp tells the stores the timestamp of the record in process. For the embedded form.
func (s *Stores) SetTimestamp(t time.Time) { s.clock.now = t.UnixMilli() }

// OnDrop has f called for each write that a store refuses because it comes too late. reason
// is one of few constants. For the embedded form.
func (s *Stores) OnDrop(f func(reason string)) { s.dropped = f }

func (s *Stores) add(from TaskStores, def Definition) error {
	var raw any
	var err error
	switch def.Kind {
	case statestore.KindKeyValue, statestore.KindTimestampedKeyValue:
		raw, err = from.KeyValue(def.Name)
	case statestore.KindWindow, statestore.KindTimestampedWindow:
		raw, err = from.Window(def.Name)
	case statestore.KindSession:
		raw, err = from.Session(def.Name)
	case statestore.KindVersioned:
		raw, err = from.Versioned(def.Name)
	default:
		err = fmt.Errorf("store %s is of an unknown kind: %v", def.Name, def.Kind)
	}
	if err != nil {
		return err
	}
	s.open = append(s.open, openStore{def: def, raw: raw})
	return nil
}

// access is what a typed store has of the place where it is used.
type access struct {
	name   string
	stores *Stores
	err    error // why the store cannot be used at all
}

// Name is the store's name.
func (a *access) Name() string { return a.name }

// view gives the typed view T of a store, made once. One that cannot be used is made of the
// zero R.
func view[T, R any](s *Stores, def Definition, make func(raw R, a access) *T) *T {
	var none R
	for i := range s.open {
		o := &s.open[i]
		if o.def.Name != def.Name {
			continue
		}
		if o.def != def {
			err := fmt.Errorf("store %s is declared twice: as %v, connected to %s, and as %v, used there", def.Name, o.def, s.owner, def)
			return make(none, access{def.Name, s, err})
		}
		if v, ok := o.typed.(*T); ok {
			return v
		}
		v := make(o.raw.(R), access{def.Name, s, nil})
		o.typed = v
		return v
	}
	err := fmt.Errorf("store %s is %w to %s; name its handle where the processor is added, of the embedded form in Config.Stores", def.Name, ErrNotConnected, s.owner)
	return make(none, access{def.Name, s, err})
}
