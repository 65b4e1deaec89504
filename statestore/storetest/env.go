package storetest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
)

// Opener opens the user's own store that keeps the rows of the store called name. It is
// called again with the same name after the first was closed: as after a restart of the process.
type Opener func(name string) (statestore.StateStore, error)

// Env is where the stores of a test live. The zero value is a database on a file system in
// memory.
type Env struct {
	// Options opens task stores. Without an FS they are on a file system in memory, without
	// a Logger they log nothing.
	Options statestore.Options
	// InMemory has every store kept in memory in the task store ([statestore.Spec.InMemory]).
	InMemory bool
	// Store, unless nil, opens the user's own store for each store of a task.
	Store Opener
}

// rig is one task store with one store in it, and the store's changelog.
type rig struct {
	t      *testing.T
	env    Env
	spec   statestore.Spec
	s      *statestore.TaskStore
	log    []statestore.RestoreRecord
	number int64
}

const dir = "task"

func newRig(t *testing.T, env Env, spec statestore.Spec) *rig {
	t.Helper()
	if env.Options.FS == nil {
		env.Options.FS = statestore.MemoryFS()
	}
	if env.Options.Logger == nil {
		env.Options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	spec.Name, spec.InMemory = "store", env.InMemory
	if spec.Changelog == "" {
		spec.Changelog = "app-store-changelog"
	}
	r := &rig{t: t, env: env, spec: spec}
	r.open()
	t.Cleanup(r.close)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	s, err := statestore.Open(dir, r.env.Options)
	r.must(err)
	r.s = s
	spec := r.spec
	if r.env.Store != nil {
		spec.Store, err = r.env.Store(spec.Name)
		r.must(err)
	}
	r.must(s.Register(spec))
}

func (r *rig) close() {
	r.t.Helper()
	if r.s != nil {
		r.must(r.s.Close())
	}
	r.s = nil
}

// reopen closes and opens; what is not kept over that is restored from the changelog.
func (r *rig) reopen() {
	r.t.Helper()
	r.close()
	r.open()
	states, err := r.s.Stores()
	r.must(err)
	if at, ok := states[0].Offset.Next(); !ok {
		r.restore(r.log, int64(len(r.log)))
	} else if at != int64(len(r.log)) {
		r.t.Fatalf("after a restart the store is at offset %d; want %d", at, len(r.log))
	}
}

// restore applies a changelog in two batches.
func (r *rig) restore(log []statestore.RestoreRecord, next int64) {
	r.t.Helper()
	half := len(log) / 2
	r.must(r.s.Restore(r.spec.Name, log[:half], next-int64(len(log)-half)))
	r.must(r.s.Restore(r.spec.Name, log[half:], next))
	r.must(r.s.Complete(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: r.number}}, nil))
}

// elsewhere gives another store, restored from the changelog of this one. It has no store
// of the user's.
func (r *rig) elsewhere() *rig {
	r.t.Helper()
	env := r.env
	env.Options.FS, env.Store = nil, nil
	spec := r.spec
	other := newRig(r.t, env, spec)
	other.number = r.number
	other.look()
	other.restore(r.log, int64(len(r.log)))
	return other
}

// look reads what a restore then writes.
func (r *rig) look() {
	r.t.Helper()
	none := func(ok bool, err error) {
		if ok || err != nil {
			r.t.Fatalf("an empty store has something (%v)", err)
		}
	}
	switch r.spec.Kind {
	case statestore.KindSession:
		_, ok, err := r.session().Get(nil, 5, 5)
		none(ok, err)
	case statestore.KindVersioned:
		_, ok, err := r.versioned().Get(nil)
		none(ok, err)
	case statestore.KindWindow, statestore.KindTimestampedWindow:
		_, _, ok, err := r.window().Get(nil, 5)
		none(ok, err)
	default:
		_, _, ok, err := r.keyValue().Get(nil)
		none(ok, err)
	}
}

func (r *rig) seal() *statestore.Sealed {
	r.t.Helper()
	r.number++
	x, err := r.s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: r.number}})
	r.must(err)
	return x
}

func (r *rig) commitSealed(x *statestore.Sealed) {
	r.t.Helper()
	for c := range x.Changes() {
		r.log = append(r.log, statestore.RestoreRecord{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Timestamp: c.Timestamp})
	}
	r.must(r.s.Commit(x, map[string]statestore.Offset{r.spec.Name: statestore.At(int64(len(r.log)))}))
	r.s.Release(x)
}

func (r *rig) commit() { r.t.Helper(); r.commitSealed(r.seal()) }

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) keyValue() *statestore.KeyValue {
	r.t.Helper()
	kv, err := r.s.KeyValue(r.spec.Name)
	r.must(err)
	return kv
}

func (r *rig) window() *statestore.Window {
	r.t.Helper()
	w, err := r.s.Window(r.spec.Name)
	r.must(err)
	return w
}

func (r *rig) session() *statestore.Session {
	r.t.Helper()
	x, err := r.s.Session(r.spec.Name)
	r.must(err)
	return x
}

func (r *rig) versioned() *statestore.Versioned {
	r.t.Helper()
	v, err := r.s.Versioned(r.spec.Name)
	r.must(err)
	return v
}

// list reads a loop to its end, each entry as text.
func list[E any](t *testing.T, seq func(func(E, error) bool), text func(E) string) []string {
	t.Helper()
	all := []string{}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text(e))
	}
	return all
}

func (r *rig) same(what string, got, want []string) {
	r.t.Helper()
	if len(got) != len(want) {
		r.t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Fatalf("%s: entry %d is %s; want %s\n got %v\nwant %v", what, i, got[i], want[i], got, want)
		}
	}
}

func entryText(e statestore.Entry) string {
	if e.Timestamp == 0 {
		return fmt.Sprintf("%q=%q", e.Key, e.Value)
	}
	return fmt.Sprintf("%q=%q@%d", e.Key, e.Value, e.Timestamp)
}

func windowText(e statestore.WindowEntry) string {
	s := fmt.Sprintf("%q@%d=%q", e.Key, e.Start, e.Value)
	if e.Timestamp != 0 {
		s += fmt.Sprint("/", e.Timestamp)
	}
	return s
}

func sessionText(e statestore.SessionEntry) string {
	return fmt.Sprintf("%q@%d-%d=%q", e.Key, e.Start, e.End, e.Value)
}

func versionText(v statestore.Version) string {
	if v.Current {
		return fmt.Sprintf("%q=%q from %d", v.Key, v.Value, v.From)
	}
	return fmt.Sprintf("%q=%q from %d to %d", v.Key, v.Value, v.From, v.To)
}
