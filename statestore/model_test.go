package statestore

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// modelEntry is what the model holds for a key.
type modelEntry struct {
	value     string
	timestamp int64
}

type modelStore map[string]modelEntry

// model is a task store as maps.
type model struct {
	now, committed map[string]modelStore
	sealed         map[string]modelStore // nil = none
	offsets        map[string]Offset
	number         int64
}

func cloneStores(m map[string]modelStore) map[string]modelStore {
	c := map[string]modelStore{}
	for name, s := range m {
		c[name] = maps.Clone(s)
	}
	return c
}

// machine runs the same history on both.
type machine struct {
	fs     vfs.FS
	o      Options
	s      *TaskStore
	m      model
	x      *Sealed
	xoff   map[string]Offset
	names  []string
	keys   *rapid.Generator[string]
	values *rapid.Generator[string]
}

func (h *machine) open(t *rapid.T) {
	s, err := Open("task", h.o)
	if err != nil {
		t.Fatal(err)
	}
	specs := []Spec{countsSpec, latestSpec, memorySpec}
	for _, spec := range []Spec{ownSpec, wrappedSpec} {
		store, err := openFileStore(h.fs, "own/"+spec.Name, spec.Name == "own")
		if err != nil {
			t.Fatal(err)
		}
		spec.Store = store
		specs = append(specs, spec)
	}
	if err := s.Register(specs...); err != nil {
		t.Fatal(err)
	}
	h.s = s
}

func (h *machine) kv(t *rapid.T) (*KeyValue, string) {
	name := rapid.SampledFrom(h.names).Draw(t, "store")
	kv, err := h.s.KeyValue(name)
	if err != nil {
		t.Fatal(err)
	}
	return kv, name
}

func (h *machine) put(t *rapid.T) {
	kv, name := h.kv(t)
	k, v, ts := h.keys.Draw(t, "key"), h.values.Draw(t, "value"), rapid.Int64Range(-1, 1<<40).Draw(t, "timestamp")
	if err := kv.Put([]byte(k), []byte(v), ts); err != nil {
		t.Fatal(err)
	}
	if !kv.Timestamped() {
		ts = 0
	}
	h.m.now[name][k] = modelEntry{v, ts}
}

func (h *machine) remove(t *rapid.T) {
	kv, name := h.kv(t)
	k := h.keys.Draw(t, "key")
	if err := kv.Delete([]byte(k), 5); err != nil {
		t.Fatal(err)
	}
	delete(h.m.now[name], k)
}

// deleteRange is what unlogged stores and expiry do.
func (h *machine) deleteRange(t *rapid.T) {
	kv, name := h.kv(t)
	from, to := h.keys.Draw(t, "from"), h.keys.Draw(t, "to")
	end := []byte(to)
	if rapid.Bool().Draw(t, "open") {
		end = nil
	}
	if rapid.Bool().Draw(t, "by key") {
		if err := kv.DeleteRange([]byte(from), end, 6); err != nil {
			t.Fatal(err)
		}
	} else if err := h.s.table.DeleteRange(kv.st.number, []byte(from), end); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(h.m.now[name], func(k string, _ modelEntry) bool { return k >= from && (end == nil || k < to) })
}

func (h *machine) get(t *rapid.T) {
	kv, name := h.kv(t)
	h.check(t, kv, name, h.keys.Draw(t, "key"))
}

func (h *machine) check(t *rapid.T, kv *KeyValue, name, k string) {
	v, ts, ok, err := kv.Get([]byte(k))
	if err != nil {
		t.Fatal(err)
	}
	want, wantOK := h.m.now[name][k]
	if ok != wantOK || string(v) != want.value || ts != want.timestamp {
		t.Fatalf("%s: get %q = %q at %d, %v; want %q at %d, %v", name, k, v, ts, ok, want.value, want.timestamp, wantOK)
	}
}

// seal begins a commit whose end may come much later.
func (h *machine) seal(t *rapid.T) {
	if h.x != nil {
		t.Skip("sealed")
	}
	h.m.number++
	x, err := h.s.Seal(Progress{ID: CommitID{1, h.m.number}, Positions: []Position{{"in", 0, h.m.number}}})
	if err != nil {
		t.Fatal(err)
	}
	h.x, h.m.sealed = x, cloneStores(h.m.now)
	h.xoff = map[string]Offset{}
	if rapid.Bool().Draw(t, "offset") {
		for _, name := range h.names {
			h.xoff[name] = At(h.m.number * 10)
		}
	}
	// The changes applied to the committed state must give the sealed one.
	state := cloneStores(h.m.committed)
	for _, r := range x.writes.Ranges() {
		maps.DeleteFunc(state[h.names[r.Store]], func(k string, _ modelEntry) bool {
			return k >= string(r.From) && (r.To == nil || k < string(r.To))
		})
	}
	last := ""
	for c := range x.Changes() {
		at := fmt.Sprintf("%d/%s", slices.Index(h.names, c.Store), c.Key)
		if last != "" && at <= last {
			t.Fatalf("change %q after %q", at, last)
		}
		last = at
		if c.Value == nil {
			delete(state[c.Store], string(c.Key))
			continue
		}
		ts := c.Timestamp
		if c.Store != "latest" {
			ts = 0
		}
		state[c.Store][string(c.Key)] = modelEntry{string(c.Value), ts}
	}
	for _, name := range h.names {
		if !maps.Equal(state[name], h.m.sealed[name]) {
			t.Fatalf("%s: the changes give %v; want %v", name, state[name], h.m.sealed[name])
		}
	}
}

func (h *machine) commit(t *rapid.T) {
	if h.x == nil {
		t.Skip("nothing sealed")
	}
	if err := h.s.Commit(h.x, h.xoff); err != nil {
		t.Fatal(err)
	}
	h.m.committed, h.m.sealed = h.m.sealed, nil
	maps.Copy(h.m.offsets, h.xoff)
	h.s.Release(h.x)
	h.x = nil
}

func (h *machine) drop(*rapid.T) {
	h.s.Drop()
	h.x, h.m.sealed = nil, nil
	h.m.now = cloneStores(h.m.committed)
	h.m.number++ // the dropped id is not used again
}

func (h *machine) reopen(t *rapid.T) {
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	h.x, h.m.sealed = nil, nil
	if h.o.Engine == Memory {
		h.fs = vfs.NewMem()
	}
	for _, name := range h.names {
		if name == "memory" || h.o.Engine == Memory {
			h.m.committed[name] = modelStore{}
			delete(h.m.offsets, name)
		}
	}
	h.m.now = cloneStores(h.m.committed)
	h.open(t)
}

func (h *machine) warm(t *rapid.T) {
	if _, err := h.s.Warm(rapid.IntRange(1, 20).Draw(t, "n")); err != nil {
		t.Fatal(err)
	}
}

func (h *machine) prefetch(t *rapid.T) {
	kv, _ := h.kv(t)
	var keys [][]byte
	for range 60 {
		keys = append(keys, []byte(h.keys.Draw(t, "key")))
	}
	if err := kv.Prefetch(keys); err != nil {
		t.Fatal(err)
	}
}

func (h *machine) clear(t *rapid.T) {
	_, name := h.kv(t)
	err := h.s.Clear(name)
	if h.x != nil || h.s.DirtyBytes() > 0 {
		if err == nil {
			t.Fatal("clear worked over uncommitted writes")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	h.m.now[name] = modelStore{}
	h.m.committed[name] = modelStore{}
	h.m.offsets[name] = Offset{}
}

func (h *machine) restore(t *rapid.T) {
	if h.x != nil || h.s.DirtyBytes() > 0 {
		t.Skip("uncommitted writes")
	}
	_, name := h.kv(t)
	var rs []RestoreRecord
	for range rapid.IntRange(0, 5).Draw(t, "records") {
		k := h.keys.Draw(t, "key")
		if rapid.Bool().Draw(t, "tombstone") {
			rs = append(rs, RestoreRecord{Key: []byte(k)})
			delete(h.m.now[name], k)
			continue
		}
		v := h.values.Draw(t, "value")
		e := modelEntry{v, 0}
		if name == "latest" {
			e.timestamp = 77
		}
		rs = append(rs, RestoreRecord{Key: []byte(k), Value: []byte(v), Timestamp: 77})
		h.m.now[name][k] = e
	}
	h.m.committed[name] = maps.Clone(h.m.now[name])
	at, _ := h.m.offsets[name].Next()
	if err := h.s.Restore(name, rs, at+3); err != nil {
		t.Fatal(err)
	}
	if _, err := h.s.Seal(Progress{}); err == nil {
		t.Fatal("seal worked over a restore that is not complete")
	}
	h.m.offsets[name] = At(at + 3)
	if err := h.s.Complete(Progress{ID: CommitID{1, h.m.number}}, nil); err != nil {
		t.Fatal(err)
	}
}

func (h *machine) scan(t *rapid.T) {
	kv, name := h.kv(t)
	var from, to []byte
	lo, hi := "", "\xff\xff\xff\xff\xff"
	if rapid.Bool().Draw(t, "bounded") {
		lo, hi = h.keys.Draw(t, "from"), h.keys.Draw(t, "to")
		from, to = []byte(lo), []byte(hi)
	}
	reverse := rapid.Bool().Draw(t, "reverse")
	want := []string{}
	for _, k := range slices.Sorted(maps.Keys(h.m.now[name])) {
		if k >= lo && k < hi {
			want = append(want, fmt.Sprintf("%q=%q@%d", k, h.m.now[name][k].value, h.m.now[name][k].timestamp))
		}
	}
	seq := kv.Range(from, to)
	if reverse {
		slices.Reverse(want)
		seq = kv.ReverseRange(from, to)
	}
	got := []string{}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%q=%q@%d", e.Key, e.Value, e.Timestamp))
		// Writes and a whole commit inside the loop must not be seen by it.
		if len(got) == 1 && rapid.Bool().Draw(t, "write inside") {
			h.put(t)
			if h.x != nil {
				h.commit(t)
			}
			h.seal(t)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: scan [%q, %q) reverse=%v gives %v; want %v", name, lo, hi, reverse, got, want)
	}
}

// Check compares everything.
func (h *machine) Check(t *rapid.T) {
	for _, name := range h.names {
		if o := h.s.CommittedOffsets()[name]; o != h.m.offsets[name] {
			t.Fatalf("%s: offset %v; want %v", name, o, h.m.offsets[name])
		}
	}
}

func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &machine{fs: vfs.NewMem(), names: []string{"counts", "latest", "memory", "own", "wrapped"}}
		h.o = memOptions(h.fs)
		h.o.Engine = rapid.SampledFrom([]Engine{Pebble, Memory}).Draw(t, "engine")
		h.o.CacheBytes = rapid.SampledFrom([]int{-1, 64 << 10, 1 << 20}).Draw(t, "cache")
		h.keys = rapid.OneOf(
			rapid.StringMatching("[a-e]{0,2}"),
			rapid.SampledFrom([]string{"", "\x00", "\x00c", "\xff", "\xff\xff", "\x20\x00\x00\x00\x02a"}))
		h.values = rapid.OneOf(rapid.StringMatching("[a-z]{0,3}"), rapid.Custom(func(t *rapid.T) string {
			return string(bytes.Repeat([]byte("v"), rapid.IntRange(0, 3000).Draw(t, "length")))
		}))
		empty := func() map[string]modelStore {
			m := map[string]modelStore{}
			for _, name := range h.names {
				m[name] = modelStore{}
			}
			return m
		}
		h.m = model{now: empty(), committed: empty(), offsets: map[string]Offset{}}
		h.open(t)
		defer func() { _ = h.s.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"put": h.put, "put2": h.put, "put3": h.put, "delete": h.remove, "deleteRange": h.deleteRange, "get": h.get, "get2": h.get, "scan": h.scan,
			"seal": h.seal, "commit": h.commit, "drop": h.drop, "reopen": h.reopen, "warm": h.warm, "prefetch": h.prefetch, "clear": h.clear,
			"restore": h.restore, "": h.Check,
		})
		for _, name := range h.names {
			kv, _ := h.s.KeyValue(name)
			for k := range h.m.now[name] {
				h.check(t, kv, name, k)
			}
		}
	})
}
