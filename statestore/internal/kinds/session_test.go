package kinds

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func showSession(e SessionEntry) string {
	return fmt.Sprintf("%q@%d-%d=%s", e.Key, e.Start, e.End, e.Value)
}

type sessionModel struct {
	Layout
	now     int64
	entries map[string]SessionEntry // by changelog key
}

func (m *sessionModel) put(key string, value []byte, start, end int64) (refused bool) {
	m.now = max(m.now, end)
	if m.gone(end) {
		return true
	}
	id := string(AppendSession(nil, []byte(key), start, end))
	if value == nil {
		delete(m.entries, id)
	} else {
		m.entries[id] = SessionEntry{[]byte(key), start, end, value}
	}
	return false
}

// gone tells whether the segment of an end has expired.
func (m *sessionModel) gone(end int64) bool {
	return end/m.Interval < max(m.now-m.Retention, 0)/m.Interval
}

func (m *sessionModel) find(shows func(e SessionEntry) bool) []SessionEntry {
	var found []SessionEntry
	for _, e := range m.entries {
		if !m.gone(e.End) && shows(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b SessionEntry) int {
		return cmp.Or(cmp.Compare(a.End/m.Interval, b.End/m.Interval),
			bytes.Compare(AppendSession(nil, a.Key, a.Start, a.End), AppendSession(nil, b.Key, b.Start, b.End)))
	})
	return found
}

func showSessions(found []SessionEntry, reverse bool) []string {
	all := []string{}
	for _, e := range found {
		all = append(all, showSession(e))
	}
	if reverse {
		slices.Reverse(all)
	}
	return all
}

func TestSessionAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom([]Layout{{0, 1}, {5, 3}, {40, 10}, {7, 20}}).Draw(t, "layout")
		m := &sessionModel{Layout: layout, now: -1, entries: map[string]SessionEntry{}}
		rows := &mapRows{}
		x := &Session{Rows: rows, Layout: layout, Clock: &Clock{}}
		time := rapid.Int64Range(0, 60)
		same := func(t *rapid.T, what string, got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("%s at %d:\n got %v\nwant %v", what, m.now, got, want)
			}
		}
		session := func(t *rapid.T) (key string, start, end int64) {
			start = time.Draw(t, "start")
			return keys.Draw(t, "key"), start, start + rapid.Int64Range(0, 30).Draw(t, "length")
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, start, end := session(t)
				value := []byte(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "value")))
				err := x.Put([]byte(key), value, start, end, 1)
				if refused := m.put(key, value, start, end); refused != errors.Is(err, ErrExpired) || !refused && err != nil {
					t.Fatalf("put at %d-%d: %v, to be refused: %v", start, end, err, refused)
				}
			},
			"remove": func(t *rapid.T) {
				key, start, end := session(t)
				if len(m.entries) > 0 && rapid.Bool().Draw(t, "existing") {
					e := m.entries[rapid.SampledFrom(slices.Sorted(mapKeys(m.entries))).Draw(t, "entry")]
					key, start, end = string(e.Key), e.Start, e.End
				}
				if err := x.Remove([]byte(key), start, end, 1); err != nil {
					t.Fatal(err)
				}
				m.put(key, nil, start, end)
			},
			"get": func(t *rapid.T) {
				key, start, end := session(t)
				value, ok, err := x.Get([]byte(key), start, end)
				if err != nil {
					t.Fatal(err)
				}
				e, want := m.entries[string(AppendSession(nil, []byte(key), start, end))]
				want = want && end > m.now-m.Retention
				if ok != want || ok && string(value) != string(e.Value) {
					t.Fatalf("get = %q, %v; want %q, %v", value, ok, e.Value, want)
				}
			},
			"find": func(t *rapid.T) {
				key, from, to, reverse := keys.Draw(t, "key"), time.Draw(t, "from"), time.Draw(t, "to"), rapid.Bool().Draw(t, "reverse")
				want := m.find(func(e SessionEntry) bool {
					return string(e.Key) == key && e.End >= from && e.Start <= to && e.End > m.now-m.Retention
				})
				same(t, "find", collect(t, x.Find([]byte(key), from, to, reverse), showSession), showSessions(want, reverse))
			},
			"range": func(t *rapid.T) {
				fromKey, toKey := bounds(t)
				from, to, reverse := time.Draw(t, "from"), time.Draw(t, "to"), rapid.Bool().Draw(t, "reverse")
				want := m.find(func(e SessionEntry) bool {
					return within(e.Key, fromKey, toKey) && e.End >= from && e.Start <= to && e.End > m.now-m.Retention
				})
				same(t, "range", collect(t, x.FindRange(fromKey, toKey, from, to, reverse), showSession), showSessions(want, reverse))
			},
			"by end": func(t *rapid.T) {
				from, to := time.Draw(t, "from"), time.Draw(t, "to")
				want := m.find(func(e SessionEntry) bool { return e.End >= from && e.End <= to })
				slices.SortFunc(want, func(a, b SessionEntry) int {
					return cmp.Or(cmp.Compare(a.End, b.End), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start))
				})
				same(t, "by end", collect(t, x.FindByEnd(from, to), showSession), showSessions(want, false))
			},
			"expire": func(*rapid.T) { rows.expire(layout, x.Clock) },
		})
	})
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestSessionKeyIsThatOfKafkaStreams(t *testing.T) {
	b := AppendSession(nil, []byte("key"), 1, 0x0203)
	if want := "key\x00\x00\x00\x00\x00\x00\x02\x03\x00\x00\x00\x00\x00\x00\x00\x01"; string(b) != want {
		t.Errorf("%q; want %q", b, want)
	}
}

func TestSessionsThatAreNone(t *testing.T) {
	x := &Session{Rows: &mapRows{}, Layout: Layout{100, 10}, Clock: &Clock{}}
	for _, s := range [][2]int64{{-1, 5}, {6, 5}, {0, math.MaxInt64}} {
		if x.Put(nil, []byte{}, s[0], s[1], 0) == nil || x.Remove(nil, s[0], s[1], 0) == nil {
			t.Errorf("put or remove %v: no error", s)
		}
		if _, ok, err := x.Get(nil, s[0], s[1]); ok || err != nil {
			t.Errorf("get %v: %v, %v", s, ok, err)
		}
	}
	if x.Clock.Known {
		t.Error("a refused session moved the clock")
	}
}

// TestFindByEndStops early, and gives nothing afterwards.
func TestFindByEndStops(t *testing.T) {
	x := &Session{Rows: &mapRows{}, Layout: Layout{100, 10}, Clock: &Clock{}}
	for end := range int64(40) {
		if err := x.Put([]byte("k"), []byte("v"), end, end, end); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for e, err := range x.FindByEnd(5, 30) {
		if err != nil || e.End != int64(5+n) {
			t.Fatalf("entry %d: %v, %v", n, e.End, err)
		}
		if n++; n == 12 {
			break
		}
	}
}

func FuzzDecodeSession(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendSession(nil, []byte("key"), 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		key, start, end, err := DecodeSession(b)
		if err == nil && !bytes.Equal(AppendSession(nil, key, start, end), b) {
			t.Errorf("%x became %x, %d, %d", b, key, start, end)
		}
		if _, err := sessionEntry(Row{Key: b}, nil); err != nil && !errors.Is(err, ErrRow) {
			t.Errorf("row %x: %v", b, err)
		}
	})
}
