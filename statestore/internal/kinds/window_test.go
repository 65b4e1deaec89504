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

// keys is what test keys are made of: parts of them look like the times that follow a key.
var keys = rapid.SampledFrom([]string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00\x00\x00\x00\x00\x00\x00\x05", "ab", "b", "\xff", "\xff\xff",
	"a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"})

func bounds(t *rapid.T) (from, to []byte) {
	if rapid.Bool().Draw(t, "from?") {
		from = []byte(keys.Draw(t, "from"))
	}
	if rapid.Bool().Draw(t, "to?") {
		to = []byte(keys.Draw(t, "to"))
	}
	return from, to
}

func showWindow(e WindowEntry) string {
	return fmt.Sprintf("%q@%d=%s/%d", e.Key, e.Start, e.Value, e.Timestamp)
}

// windowModel is a window store as a list of what was put.
type windowModel struct {
	Layout
	duplicates bool
	now        int64
	entries    []windowPut
}

type windowPut struct {
	key       string
	start     int64
	sequence  uint32
	value     string
	timestamp int64
}

func (m *windowModel) put(key string, value []byte, start, timestamp int64) (refused bool) {
	if value == nil && m.duplicates {
		return false
	}
	m.now = max(m.now, start)
	if start/m.Interval < max(m.now-m.Retention, 0)/m.Interval {
		return true
	}
	if !m.duplicates {
		m.entries = slices.DeleteFunc(m.entries, func(e windowPut) bool { return e.key == key && e.start == start })
	}
	if value != nil {
		e := windowPut{key, start, 0, string(value), timestamp}
		if m.duplicates {
			e.sequence = uint32(len(m.entries) + 1)
		}
		m.entries = append(m.entries, e)
	}
	return false
}

func (m *windowModel) fetch(shows func(e windowPut) bool, reverse bool) []string {
	var found []windowPut
	for _, e := range m.entries {
		if e.start > m.now-m.Retention && shows(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b windowPut) int {
		return cmp.Or(cmp.Compare(a.start/m.Interval, b.start/m.Interval),
			bytes.Compare(AppendWindow(nil, []byte(a.key), a.start, a.sequence), AppendWindow(nil, []byte(b.key), b.start, b.sequence)))
	})
	if reverse {
		slices.Reverse(found)
	}
	all := []string{}
	for _, e := range found {
		all = append(all, showWindow(WindowEntry{[]byte(e.key), e.start, []byte(e.value), e.timestamp}))
	}
	return all
}

// TestWindowAgainstModel puts and fetches at random; rows that have expired may go at any time.
func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom([]Layout{{0, 1}, {5, 3}, {40, 10}, {7, 20}}).Draw(t, "layout")
		m := &windowModel{Layout: layout, duplicates: rapid.Bool().Draw(t, "duplicates"), now: -1}
		rows := &mapRows{}
		w := &Window{Rows: rows, Layout: layout, Duplicates: m.duplicates, Clock: &Clock{}}
		time := rapid.Int64Range(0, 60)
		same := func(t *rapid.T, what string, got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("%s at %d:\n got %v\nwant %v", what, m.now, got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, start := keys.Draw(t, "key"), time.Draw(t, "start")
				value := []byte(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "value")))
				if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					value = nil
				}
				logged := len(rows.logged)
				err := w.Put([]byte(key), value, start, start+1)
				if refused := m.put(key, value, start, start+1); refused != errors.Is(err, ErrExpired) || !refused && err != nil {
					t.Fatalf("put at %d: %v, to be refused: %v", start, err, refused)
				}
				if err != nil && len(rows.logged) != logged {
					t.Fatal("a refused put was logged")
				}
			},
			"get": func(t *rapid.T) {
				key, start := keys.Draw(t, "key"), time.Draw(t, "start")
				value, timestamp, ok, err := w.Get([]byte(key), start)
				if err != nil {
					t.Fatal(err)
				}
				want := m.fetch(func(e windowPut) bool { return e.key == key && e.start == start }, true)
				var got []string
				if ok {
					got = []string{showWindow(WindowEntry{[]byte(key), start, value, timestamp})}
				}
				same(t, "get", got, want[:min(1, len(want))])
			},
			"fetch": func(t *rapid.T) {
				key, from, to, reverse := keys.Draw(t, "key"), time.Draw(t, "from"), time.Draw(t, "to"), rapid.Bool().Draw(t, "reverse")
				want := m.fetch(func(e windowPut) bool { return e.key == key && e.start >= from && e.start <= to }, reverse)
				same(t, "fetch", collect(t, w.Fetch([]byte(key), from, to, reverse), showWindow), want)
			},
			"range": func(t *rapid.T) {
				fromKey, toKey := bounds(t)
				from, to, reverse := time.Draw(t, "from"), time.Draw(t, "to"), rapid.Bool().Draw(t, "reverse")
				want := m.fetch(func(e windowPut) bool {
					return within([]byte(e.key), fromKey, toKey) && e.start >= from && e.start <= to
				}, reverse)
				same(t, "range", collect(t, w.FetchRange(fromKey, toKey, from, to, reverse), showWindow), want)
			},
			"all": func(t *rapid.T) {
				want := m.fetch(func(windowPut) bool { return true }, false)
				same(t, "all", collect(t, w.FetchRange(nil, nil, math.MinInt64, math.MaxInt64, false), showWindow), want)
			},
			"expire": func(*rapid.T) { rows.expire(layout, w.Clock) },
		})
	})
}

func TestWindowKeyIsThatOfKafkaStreams(t *testing.T) {
	b := AppendWindow(nil, []byte("key"), 0x0102030405060708, 9)
	if want := "key\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x09"; string(b) != want {
		t.Errorf("%q; want %q", b, want)
	}
	rows := &mapRows{}
	w := &Window{Rows: rows, Layout: Layout{1000, 600}, Duplicates: true, Clock: &Clock{}}
	for range 2 {
		if err := w.Put([]byte("k"), []byte("v"), 601, 7); err != nil {
			t.Fatal(err)
		}
	}
	want := "k\x00\x00\x00\x00\x00\x00\x02\x59\x00\x00\x00\x02"
	if r := rows.logged[1]; string(Logged(r.Key)) != want || r.Timestamp != 7 || string(r.Key[:8]) != "\x00\x00\x00\x00\x00\x00\x00\x01" {
		t.Errorf("row %q at %d; want %q in segment 1", r.Key, r.Timestamp, want)
	}
}

func TestSequenceBeginsAnew(t *testing.T) {
	w := &Window{Rows: &mapRows{}, Layout: Layout{1000, 600}, Duplicates: true, Clock: &Clock{Known: true, Sequence: maxSequence}}
	if err := w.Put([]byte("k"), []byte("v"), 1, 1); err != nil || w.Clock.Sequence != 0 {
		t.Errorf("after the last sequence comes %d, %v", w.Clock.Sequence, err)
	}
}

// TestSequenceAfterRestore is that of the last put, though the changelog is in the order of keys.
func TestSequenceAfterRestore(t *testing.T) {
	w := &Window{Layout: Layout{1000, 600}, Duplicates: true, Clock: &Clock{}}
	for i, sequence := range []uint32{4, 2, 3, maxSequence - 1, maxSequence/2 + 5, maxSequence - 2, 1, 0, maxSequence} {
		if i == 3 {
			w.Clock.Sequence = maxSequence / 2
		}
		if err := w.Observe(AppendWindow(nil, nil, 1, sequence)); err != nil {
			t.Fatal(err)
		}
		if want := []uint32{4, 4, 4, maxSequence - 1, maxSequence - 1, maxSequence - 1, 1, 1, 1}[i]; w.Clock.Sequence != want {
			t.Errorf("after %d: sequence %d; want %d", sequence, w.Clock.Sequence, want)
		}
	}
}

// TestFetchSeesItsBeginning also where the loop writes behind what it has reached.
func TestFetchSeesItsBeginning(t *testing.T) {
	w := &Window{Rows: &mapRows{}, Layout: Layout{100, 10}, Clock: &Clock{}}
	put := func(start int64) {
		if err := w.Put([]byte("k"), []byte("v"), start, start); err != nil {
			t.Fatal(err)
		}
	}
	put(5)
	put(95)
	n := 0
	for _, err := range w.Fetch([]byte("k"), 0, math.MaxInt64, false) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		put(50)
		put(96)
	}
	if n != 2 {
		t.Errorf("%d entries; want those 2 of the beginning", n)
	}
}

func TestTimesOutOfRange(t *testing.T) {
	w := &Window{Rows: &mapRows{}, Layout: Layout{100, 10}, Clock: &Clock{}}
	for _, start := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if err := w.Put(nil, []byte{}, start, 0); !errors.Is(err, errTimeRange) {
			t.Errorf("put at %d: %v", start, err)
		}
		if _, _, ok, err := w.Get(nil, start); ok || err != nil {
			t.Errorf("get at %d: %v, %v", start, ok, err)
		}
	}
	if w.Clock.Known {
		t.Error("a refused start moved the clock")
	}
}

func FuzzDecodeWindow(f *testing.F) {
	f.Add([]byte{}, []byte("k"))
	f.Add(AppendWindow(nil, []byte("key"), 1, 2), []byte{0})
	f.Fuzz(func(t *testing.T, b, value []byte) {
		key, start, sequence, err := DecodeWindow(b)
		if err == nil && !bytes.Equal(AppendWindow(nil, key, start, sequence), b) {
			t.Errorf("%x became %x, %d, %d", b, key, start, sequence)
		}
		w := &Window{Rows: &mapRows{}, Layout: Layout{100, 10}, Clock: &Clock{}}
		if werr := w.Observe(b); (werr == nil) != (err == nil && sequence == 0) {
			t.Errorf("observe %x: %v; decode %v", b, werr, err)
		}
		if _, err := windowEntry(Row{Key: b, Value: value}, nil); err != nil && !errors.Is(err, ErrRow) {
			t.Errorf("row %x: %v", b, err)
		}
	})
}
