package statestore

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
)

// simKeys look like parts of each other, like times, metadata and prefixes of stores.
var simKeys = []string{"", "\x00", "\x00c", "\x00\x00\x00\x00\x00\x00\x00\x05", "a", "a\x00", "a\x00\x00\x00\x00\x00\x00\x00\x05", "ab", "b",
	" \x00\x00\x00\x02a", "\xff", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xffb"}

func (h *sim) key() string {
	if h.rng.IntN(3) == 0 {
		return fmt.Sprintf("k%02d", h.rng.IntN(40))
	}
	return simKeys[h.rng.IntN(len(simKeys))]
}

// bound gives a key, or nil: open.
func (h *sim) bound() []byte {
	if h.rng.IntN(3) == 0 {
		return nil
	}
	return []byte(h.key())
}

func (h *sim) value() []byte {
	switch h.rng.IntN(8) {
	case 0, 1:
		return nil
	case 2:
		return []byte{}
	case 3:
		return []byte(strings.Repeat(fmt.Sprint(h.rng.IntN(10)), h.rng.IntN(5000)))
	}
	return fmt.Append(nil, h.rng.IntN(1000))
}

// time is one near the present, or long before.
func (h *sim) time() int64 {
	switch h.rng.IntN(10) {
	case 0:
		return max(h.drift-h.rng.Int64N(300_000), 0)
	case 1:
		return h.drift / 60_000 * 60_000
	case 2, 3, 4: // one that comes again
		return max(h.drift-h.rng.Int64N(30_000), 0) / 10_000 * 10_000
	}
	return max(h.drift-h.rng.Int64N(5_000), 0)
}

// span is two times, or all.
func (h *sim) span() (from, to int64) {
	if h.rng.IntN(3) == 0 {
		return 0, math.MaxInt64
	}
	return h.time(), h.time() + h.rng.Int64N(50_000)
}

func within(k string, from, to []byte) bool {
	return (from == nil || k >= string(from)) && (to == nil || k < string(to))
}

// readAll reads a scan to its end.
func readAll[E any](h *sim, seq iter.Seq2[E, error], text func(E) string) []string {
	all := []string{}
	for e, err := range seq {
		h.ok(err)
		all = append(all, text(e))
	}
	return all
}

func simEntry(e Entry) string { return simText(e.Key, 0, 0, e.Value, e.Timestamp) }

func simWindow(e WindowEntry) string { return simText(e.Key, e.Start, 0, e.Value, e.Timestamp) }

func simSession(e SessionEntry) string { return simText(e.Key, e.Start, e.End, e.Value, 0) }

func (h *sim) same(what string, got, want []string) {
	if !slices.Equal(got, want) {
		h.fail("%s:\n got %q\nwant %q", what, got, want)
	}
}

func (h *sim) keyValue(p Spec) *KeyValue {
	kv, err := h.s.KeyValue(p.Name)
	h.ok(err)
	return kv
}

func (h *sim) window(p Spec) *Window {
	w, err := h.s.Window(p.Name)
	h.ok(err)
	return w
}

func (h *sim) session(p Spec) *Session {
	x, err := h.s.Session(p.Name)
	h.ok(err)
	return x
}

func (h *sim) versioned(p Spec) *Versioned {
	v, err := h.s.Versioned(p.Name)
	h.ok(err)
	return v
}

// write puts or deletes at random, in some store.
func (h *sim) write() {
	p, ok := h.draw()
	if !ok {
		return
	}
	h.drift += h.rng.Int64N([]int64{10, 1000, 5000, 40_000}[h.rng.IntN(4)])
	key, value, at := h.key(), h.value(), h.time()
	m := h.now.stores[p.Name]
	h.tell("  %s: put %q %d = %s, nil %t", p.Name, key, at, shorten(value), value == nil)
	switch p.Kind {
	case KindSession:
		end := at + h.rng.Int64N(2000)
		if h.rng.IntN(8) == 0 {
			h.ok(h.session(p).Remove([]byte(key), at, end, at))
			m.set(simKey{key: key, start: at, end: end}, nil, at)
			return
		}
		h.refused(h.session(p).Put([]byte(key), value, at, end, at+3), func() bool { return m.put(simKey{key: key, start: at, end: end}, value, at+3) })
	case KindVersioned:
		h.writeVersion(p, m, key, value, at/10)
	case KindKeyValue, KindTimestampedKeyValue:
		h.ok(h.keyValue(p).Put([]byte(key), value, at+3))
		m.put(simKey{key: key}, value, at+3)
	default:
		h.refused(h.window(p).Put([]byte(key), value, at, at+3), func() bool { return m.put(simKey{key: key, start: at}, value, at+3) })
	}
}

func (h *sim) refused(err error, put func() bool) {
	if errors.Is(err, ErrExpired) != put() {
		h.fail("put: %v; the model says otherwise", err)
	}
	if !errors.Is(err, ErrExpired) {
		h.ok(err)
	}
}

func (h *sim) writeVersion(p Spec, m *simStore, key string, value []byte, at int64) {
	if h.rng.IntN(4) == 0 {
		want, wantOK := m.asOf(key, at)
		if at < m.now-m.retention() {
			wantOK = false
		}
		before, ok, err := h.versioned(p).Delete([]byte(key), at)
		h.ok(err)
		if ok != wantOK || ok && versionText(before) != versionText(want) {
			h.fail("delete at %d: %s, %v; want %s, %v", at, versionText(before), ok, versionText(want), wantOK)
		}
		m.putVersion(key, nil, at)
		return
	}
	got, err := h.versioned(p).Put([]byte(key), value, at)
	h.ok(err)
	if want := m.putVersion(key, value, at); got != want {
		h.fail("put at %d: %+v; want %+v", at, got, want)
	}
}

// read reads something of some store.
func (h *sim) read() {
	p, ok := h.draw()
	if !ok {
		return
	}
	h.readFrom(p, h.now.stores[p.Name])
}

func (h *sim) readFrom(p Spec, m *simStore) {
	key, reverse := h.key(), h.rng.IntN(2) == 0
	from, to := h.span()
	lo, hi := h.bound(), h.bound()
	h.tell("  %s: key %q, %d to %d, range %q to %q", p.Name, key, from, to, lo, hi)
	switch p.Kind {
	case KindSession:
		h.readSessions(p, m, key, reverse, from, to, lo, hi)
	case KindVersioned:
		h.readVersions(p, m, key, reverse, from/10, to/10)
	case KindKeyValue, KindTimestampedKeyValue:
		h.readKeyValue(p, m, key, reverse, lo, hi)
	default:
		h.readWindows(p, m, key, reverse, from, to, lo, hi)
	}
}

func (h *sim) readKeyValue(p Spec, m *simStore, key string, reverse bool, lo, hi []byte) {
	kv := h.keyValue(p)
	value, timestamp, ok, err := kv.Get([]byte(key))
	h.ok(err)
	if want, there := m.entries[simKey{key: key}]; ok != there || string(value) != want.value || timestamp != want.timestamp {
		h.fail("get %q = %s/%d, %v; want %s/%d, %v", key, shorten(value), timestamp, ok, shorten([]byte(want.value)), want.timestamp, there)
	}
	seq := kv.Range(lo, hi)
	if reverse {
		seq = kv.ReverseRange(lo, hi)
	}
	h.same("range", readAll(h, seq, simEntry), m.show(reverse, func(k simKey) bool { return within(k.key, lo, hi) }))
	h.same("prefix", readAll(h, kv.PrefixScan([]byte(key)), simEntry), m.show(false, func(k simKey) bool { return strings.HasPrefix(k.key, key) }))
}

func (h *sim) readWindows(p Spec, m *simStore, key string, reverse bool, from, to int64, lo, hi []byte) {
	w := h.window(p)
	one, some := w.Fetch([]byte(key), from, to), w.FetchRange(lo, hi, from, to)
	if reverse {
		one, some = w.ReverseFetch([]byte(key), from, to), w.ReverseFetchRange(lo, hi, from, to)
	}
	in := func(k simKey) bool { return k.start >= from && k.start <= to }
	h.same("fetch", readAll(h, one, simWindow), m.show(reverse, func(k simKey) bool { return k.key == key && in(k) }))
	h.same("fetch range", readAll(h, some, simWindow), m.show(reverse, func(k simKey) bool { return within(k.key, lo, hi) && in(k) }))
	value, timestamp, ok, err := w.Get([]byte(key), from)
	h.ok(err)
	want := m.show(true, func(k simKey) bool { return k.key == key && k.start == from })
	got := []string{}
	if ok {
		got = append(got, simText([]byte(key), from, 0, value, timestamp))
	}
	h.same("get", got, want[:min(1, len(want))])
}

func (h *sim) readSessions(p Spec, m *simStore, key string, reverse bool, from, to int64, lo, hi []byte) {
	x := h.session(p)
	one, some := x.Find([]byte(key), from, to), x.FindRange(lo, hi, from, to)
	if reverse {
		one, some = x.ReverseFind([]byte(key), from, to), x.ReverseFindRange(lo, hi, from, to)
	}
	in := func(k simKey) bool { return k.end >= from && k.start <= to }
	h.same("find", readAll(h, one, simSession), m.show(reverse, func(k simKey) bool { return k.key == key && in(k) }))
	h.same("find range", readAll(h, some, simSession), m.show(reverse, func(k simKey) bool { return within(k.key, lo, hi) && in(k) }))
	got := readAll(h, x.FindByEnd(from, to), simSession)
	want := m.list(false, func(k simKey) bool { return k.end >= from && k.end <= to })
	slices.Sort(got)
	slices.Sort(want)
	h.same("find by end", got, want)
	for k, v := range m.entries { // each, shown or not
		value, ok, err := x.Get([]byte(k.key), k.start, k.end)
		h.ok(err)
		if there := k.end > m.now-m.retention(); ok != there || ok && string(value) != v.value {
			h.fail("get %+v = %s, %v; want %s, %v", k, shorten(value), ok, shorten([]byte(v.value)), there)
		}
	}
}

func (h *sim) readVersions(p Spec, m *simStore, key string, reverse bool, from, to int64) {
	v := h.versioned(p)
	text := func(x Version, ok bool) []string {
		if !ok {
			return nil
		}
		return []string{versionText(x)}
	}
	x, ok, err := v.GetAsOf([]byte(key), from)
	h.ok(err)
	got := text(x, ok)
	h.same(fmt.Sprint("as of ", from), got, text(m.asOf(key, from)))
	x, ok, err = v.Get([]byte(key))
	h.ok(err)
	got = text(x, ok)
	h.same("newest", got, text(m.asOf(key, math.MaxInt64)))
	seq := v.Versions([]byte(key), from, to)
	if reverse {
		seq = v.ReverseVersions([]byte(key), from, to)
	}
	want := []string{}
	if from <= to {
		for _, x := range m.shownVersions(key, from, to) {
			want = append(want, versionText(x))
		}
	}
	if reverse {
		slices.Reverse(want)
	}
	h.same(fmt.Sprintf("versions of %d to %d at %d", from, to, m.now), readAll(h, seq, versionText), want)
}

// compareStore reads the whole store.
func (h *sim) compareStore(p Spec, m *simStore) {
	all := func(simKey) bool { return true }
	now := int64(0)
	switch p.Kind {
	case KindSession:
		x := h.session(p)
		now = x.StreamTime()
		h.same("all", readAll(h, x.All(), simSession), m.show(false, all))
	case KindVersioned:
		v := h.versioned(p)
		now = v.StreamTime()
		got := readAll(h, v.All(), versionText)
		slices.Sort(got)
		h.same("all", got, m.allVersions())
	case KindKeyValue, KindTimestampedKeyValue:
		kv := h.keyValue(p)
		now = m.now
		h.same("all", readAll(h, kv.All(), simEntry), m.show(false, all))
		h.same("all in reverse", readAll(h, kv.ReverseAll(), simEntry), m.show(true, all))
		n, err := kv.ApproximateCount()
		h.ok(err)
		if want := len(m.show(false, all)); n != int64(want) { // so few are counted
			h.fail("%s: count %d; want %d", p.Name, n, want)
		}
	default:
		w := h.window(p)
		now = w.StreamTime()
		h.same("all", readAll(h, w.All(), simWindow), m.show(false, all))
		h.same("all in reverse", readAll(h, w.ReverseAll(), simWindow), m.show(true, all))
	}
	if now != m.now {
		h.fail("stream time %d; want %d", now, m.now)
	}
}

func (h *sim) compareNow() {
	for _, p := range h.specs {
		h.tell("  compare %s", p.Name)
		h.compareStore(p, h.now.stores[p.Name])
	}
	h.compareProgress(h.p.committed)
}

func (h *sim) compareProgress(m *simState) {
	if err := h.wrongProgress(m); err != nil {
		h.fail("%v", err)
	}
}
