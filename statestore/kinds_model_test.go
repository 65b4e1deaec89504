package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
	"pgregory.net/rapid"
)

// The logic of the kinds is tested over plain rows in its own package. Here the same logic
// over plain rows is the model of what it does over overlay, commits, restores and restarts.

// plainRows keeps rows in order, in a slice.
type plainRows struct{ rows []kinds.Row }

func (m *plainRows) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(m.rows, key, func(r kinds.Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

func (m *plainRows) Get(key []byte) ([]byte, int64, bool, error) {
	if i, ok := m.find(key); ok {
		return m.rows[i].Value, m.rows[i].Timestamp, true, nil
	}
	return nil, 0, false, nil
}

func (m *plainRows) Put(key, value []byte, timestamp int64, _ bool) error {
	if i, ok := m.find(key); ok {
		m.rows = slices.Delete(m.rows, i, i+1)
	}
	if i, _ := m.find(key); value != nil && !kinds.IsLog(key) {
		m.rows = slices.Insert(m.rows, i, kinds.Row{Key: bytes.Clone(key), Value: bytes.Clone(value), Timestamp: timestamp})
	}
	return nil
}

func (m *plainRows) Scan(ranges []kinds.Range, reverse bool) iter.Seq2[kinds.Row, error] {
	return func(yield func(kinds.Row, error) bool) {
		var found []kinds.Row
		for _, g := range ranges {
			for _, r := range m.rows {
				if bytes.Compare(r.Key, g.From) >= 0 && (g.To == nil || bytes.Compare(r.Key, g.To) < 0) {
					found = append(found, r)
				}
			}
		}
		if reverse {
			slices.Reverse(found)
		}
		for _, r := range found {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// kindsModel is one state of all stores.
type kindsModel struct {
	rows   map[string]*plainRows
	clocks map[string]*kinds.Clock
}

func newKindsModel(specs []Spec) *kindsModel {
	m := &kindsModel{map[string]*plainRows{}, map[string]*kinds.Clock{}}
	for _, p := range specs {
		m.rows[p.Name], m.clocks[p.Name] = &plainRows{}, &kinds.Clock{}
	}
	return m
}

func (m *kindsModel) clone() *kindsModel {
	c := newKindsModel(nil)
	for name, r := range m.rows {
		clock := *m.clocks[name]
		c.rows[name], c.clocks[name] = &plainRows{slices.Clone(r.rows)}, &clock
	}
	return c
}

func (m *kindsModel) layout(p Spec) (kinds.Rows, kinds.Layout, *kinds.Clock) {
	return m.rows[p.Name], kinds.Layout{Retention: p.Retention.Milliseconds(), Interval: p.segmentMillis()}, m.clocks[p.Name]
}

func (m *kindsModel) window(p Spec) *kinds.Window {
	rows, layout, clock := m.layout(p)
	return &kinds.Window{Rows: rows, Layout: layout, Clock: clock, Duplicates: p.RetainDuplicates}
}

func (m *kindsModel) session(p Spec) *kinds.Session {
	rows, layout, clock := m.layout(p)
	return &kinds.Session{Rows: rows, Layout: layout, Clock: clock}
}

func (m *kindsModel) versioned(p Spec) *kinds.Versioned {
	rows, layout, clock := m.layout(p)
	return &kinds.Versioned{Rows: rows, Layout: layout, Clock: clock, Ended: clock.Now()}
}

// kindSpecs have the smallest segments that there are, so that test times pass several.
var kindSpecs = []Spec{
	{Name: "windows", Kind: KindWindow, Changelog: "app-windows-changelog", Retention: 100 * time.Second, WindowSize: time.Second},
	{Name: "stamped", Kind: KindTimestampedWindow, Changelog: "app-stamped-changelog", Retention: 200 * time.Second},
	{Name: "duplicates", Kind: KindWindow, Changelog: "app-duplicates-changelog", Retention: 100 * time.Second, RetainDuplicates: true},
	{Name: "sessions", Kind: KindSession, Changelog: "app-sessions-changelog", Retention: 100 * time.Second},
	{Name: "versions", Kind: KindVersioned, Changelog: "app-versions-changelog", Retention: 5 * time.Second},
	{Name: "memory-windows", Kind: KindTimestampedWindow, Changelog: "app-memory-windows-changelog", Retention: 100 * time.Second, InMemory: true},
	{Name: "memory-versions", Kind: KindVersioned, Changelog: "app-memory-versions-changelog", Retention: 5 * time.Second, InMemory: true},
}

// kindsMachine runs one history on a task store and on the model.
type kindsMachine struct {
	o                      Options
	s                      *TaskStore
	now, sealed, committed *kindsModel
	x                      *Sealed
	changelogs             map[string][]RestoreRecord // committed
	number                 int64
}

func (h *kindsMachine) open(t fataler, dir string) *TaskStore {
	t.Helper()
	s, err := Open(dir, h.o)
	if err == nil {
		err = s.Register(kindSpecs...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func show[E any](t fataler, seq iter.Seq2[E, error]) []string {
	t.Helper()
	all := []string{}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%v", e))
	}
	return all
}

// dumps gives all that reads show of a store, of the task store and of the model.
func (h *kindsMachine) dumps(t fataler, s *TaskStore, m *kindsModel, p Spec) (got, want []string) {
	t.Helper()
	switch p.Kind {
	case KindSession:
		x := s.storeNamed(t, p.Name).session
		return append(show(t, x.All()), fmt.Sprint(x.StreamTime())), append(show(t, m.session(p).FindRange(nil, nil, 0, math.MaxInt64, false)), fmt.Sprint(m.clocks[p.Name].Now()))
	case KindVersioned:
		v := s.storeNamed(t, p.Name).versioned
		return append(show(t, v.All()), fmt.Sprint(v.StreamTime())), append(show(t, m.versioned(p).All()), fmt.Sprint(m.clocks[p.Name].Now()))
	}
	w := s.storeNamed(t, p.Name).window
	got, want = append(show(t, w.ReverseAll()), fmt.Sprint(w.StreamTime())), append(show(t, m.window(p).FetchRange(nil, nil, 0, math.MaxInt64, true)), fmt.Sprint(m.clocks[p.Name].Now()))
	if p.Kind == KindWindow { // does not keep them
		want = append(show(t, withoutTimestamps(m.window(p).FetchRange(nil, nil, 0, math.MaxInt64, true))), fmt.Sprint(m.clocks[p.Name].Now()))
	}
	return got, want
}

func withoutTimestamps(seq iter.Seq2[kinds.WindowEntry, error]) iter.Seq2[kinds.WindowEntry, error] {
	return func(yield func(kinds.WindowEntry, error) bool) {
		for e, err := range seq {
			e.Timestamp = 0
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *TaskStore) storeNamed(t fataler, name string) *store {
	t.Helper()
	st, err := s.find(name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (h *kindsMachine) same(t fataler, s *TaskStore, m *kindsModel, when string) {
	t.Helper()
	for _, p := range kindSpecs {
		got, want := h.dumps(t, s, m, p)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: store %q:\n got %v\nwant %v", when, p.Name, got, want)
		}
	}
}

func (h *kindsMachine) put(t *rapid.T) {
	p := rapid.SampledFrom(kindSpecs).Draw(t, "store")
	key := []byte(rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "b"}).Draw(t, "key"))
	at := rapid.Int64Range(0, 6).Draw(t, "time") * 1000 * int64(1+3*min(len(h.changelogs["windows"]), 12))
	if p.Kind == KindVersioned {
		at /= 10
	}
	var value []byte
	if rapid.IntRange(0, 3).Draw(t, "delete") > 0 {
		value = []byte(fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value")))
	}
	timestamp := at + 7
	var got, want error
	switch st := h.s.storeNamed(t, p.Name); p.Kind {
	case KindSession:
		end := at + rapid.Int64Range(0, 9).Draw(t, "length")
		got, want = st.session.Put(key, value, at, end, timestamp), h.now.session(p).Put(key, value, at, end, timestamp)
	case KindVersioned:
		r, err := st.versioned.Put(key, value, at)
		q, _ := h.now.versioned(p).Put(key, value, at)
		if r != PutResult(q) {
			t.Fatalf("put = %+v; want %+v", r, q)
		}
		got = err
	default:
		got, want = st.window.Put(key, value, at, timestamp), h.now.window(p).Put(key, value, at, timestamp)
	}
	if errors.Is(got, ErrExpired) != errors.Is(want, ErrExpired) || got != nil && want == nil {
		t.Fatalf("put into %q at %d: %v; want %v", p.Name, at, got, want)
	}
}

func (h *kindsMachine) fetch(t *rapid.T) {
	p := rapid.SampledFrom(kindSpecs).Draw(t, "store")
	key := []byte(rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "b"}).Draw(t, "key"))
	from, to := rapid.Int64Range(0, 300_000).Draw(t, "from"), rapid.Int64Range(0, 300_000).Draw(t, "to")
	var got, want []string
	switch st := h.s.storeNamed(t, p.Name); p.Kind {
	case KindSession:
		got, want = show(t, st.session.Find(key, from, to)), show(t, h.now.session(p).Find(key, from, to, false))
	case KindVersioned:
		got, want = show(t, st.versioned.ReverseVersions(key, from/10, to/10)), show(t, h.now.versioned(p).Versions(key, from/10, to/10, true))
		x, _, err := st.versioned.GetAsOf(key, from/10)
		y, _, _ := h.now.versioned(p).GetAsOf(key, from/10)
		got, want = append(got, fmt.Sprintf("%v %v", x, err)), append(want, fmt.Sprintf("%v %v", y, nil))
	case KindWindow:
		got, want = show(t, st.window.Fetch(key, from, to)), show(t, withoutTimestamps(h.now.window(p).Fetch(key, from, to, false)))
	default:
		got, want = show(t, st.window.Fetch(key, from, to)), show(t, h.now.window(p).Fetch(key, from, to, false))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("fetch of %q from %d to %d in %q:\n got %v\nwant %v", key, from, to, p.Name, got, want)
	}
}

func (h *kindsMachine) seal(t *rapid.T) {
	if h.x != nil {
		t.Skip("sealed")
	}
	h.number++
	x, err := h.s.Seal(Progress{ID: CommitID{1, h.number}})
	if err != nil {
		t.Fatal(err)
	}
	h.x, h.sealed = x, h.now.clone()
}

func (h *kindsMachine) commit(t *rapid.T) {
	if h.x == nil {
		t.Skip("nothing sealed")
	}
	for c := range h.x.Changes() {
		h.changelogs[c.Store] = append(h.changelogs[c.Store], RestoreRecord{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Timestamp: c.Timestamp})
	}
	offsets := map[string]Offset{}
	for name, log := range h.changelogs {
		offsets[name] = At(int64(len(log)))
	}
	if err := h.s.Commit(h.x, offsets); err != nil {
		t.Fatal(err)
	}
	h.s.Release(h.x)
	h.x, h.committed = nil, h.sealed
}

func (h *kindsMachine) drop(t *rapid.T) {
	h.s.Drop()
	h.x, h.now = nil, h.committed.clone()
}

// restore brings stores to the end of their changelogs, in batches.
func (h *kindsMachine) restore(t *rapid.T, s *TaskStore) {
	states, err := s.Stores()
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		log := h.changelogs[st.Spec.Name]
		at, _ := st.Offset.Next()
		for at < int64(len(log)) {
			n := min(int64(len(log)), at+rapid.Int64Range(1, 20).Draw(t, "batch"))
			if err := s.Restore(st.Spec.Name, log[at:n], n); err != nil {
				t.Fatal(err)
			}
			at = n
		}
	}
	if err := s.Complete(Progress{ID: CommitID{1, h.number}}, nil); err != nil {
		t.Fatal(err)
	}
}

func (h *kindsMachine) reopen(t *rapid.T) {
	if h.o.Engine == Memory {
		t.Skip("it forgets everything")
	}
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	h.s = h.open(t, "task")
	h.restore(t, h.s) // those in memory
	h.x, h.now = nil, h.committed.clone()
}

func (h *kindsMachine) restoreElsewhere(t *rapid.T) {
	other := h.open(t, "other"+fmt.Sprint(h.number, len(h.changelogs["windows"]), rapid.Int().Draw(t, "dir")))
	defer other.Close()
	h.restore(t, other)
	h.same(t, other, h.committed, "restored from the changelogs")
}

func TestKindsAgainstModel(t *testing.T) {
	for _, engine := range []Engine{Pebble, Memory} {
		t.Run(fmt.Sprint("engine ", engine), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := &kindsMachine{now: newKindsModel(kindSpecs), committed: newKindsModel(kindSpecs), changelogs: map[string][]RestoreRecord{}}
				h.o = memOptions(vfs.NewMem())
				h.o.Engine, h.o.CacheBytes = engine, rapid.SampledFrom([]int{-1, 1 << 20}).Draw(t, "cache")
				h.s = h.open(t, "task")
				defer func() { _ = h.s.Close() }()
				t.Repeat(map[string]func(*rapid.T){
					"put": h.put, "put2": h.put, "put3": h.put, "put4": h.put, "put5": h.put, "fetch": h.fetch, "fetch2": h.fetch,
					"seal": h.seal, "commit": h.commit, "drop": h.drop, "reopen": h.reopen, "restore": h.restoreElsewhere,
					"": func(t *rapid.T) { h.same(t, h.s, h.now, "now") },
				})
			})
		})
	}
}
