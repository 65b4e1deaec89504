package table

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// model is what a table must say: maps stand for the database.
type model struct {
	fatalf        func(format string, args ...any)
	tb            *Table
	database, now map[string]modelEntry
	pending       map[string]modelEntry // sealed, not applied
	written       map[string]bool       // in the running interval, and whether logged
	scans         []*scan
}

type modelEntry struct {
	value string
	time  int64
}

const modelStore = 7

func newModel(budget int, fatalf func(format string, args ...any)) *model {
	return &model{fatalf: fatalf, tb: New(budget), database: map[string]modelEntry{}, now: map[string]modelEntry{}, written: map[string]bool{}}
}

func (m *model) get(k string) {
	v, ts, a := m.tb.Get(modelStore, []byte(k))
	e, ok := m.now[k]
	switch {
	case a == Unknown:
		d, in := m.database[k]
		if d != e || in != ok {
			m.fatalf("%q is unknown to the table; database %v, truth %v", k, d, e)
		}
		var v []byte
		if in {
			v = []byte(d.value)
		}
		m.tb.Fill(modelStore, []byte(k), v, d.time)
	case ok != (a == Present) || string(v) != e.value || ok && ts != e.time:
		m.fatalf("get %q = %q at %d, answer %d; want %v, %v", k, v, ts, a, e, ok)
	}
}

func (m *model) put(k string, e modelEntry, logged bool) {
	m.now[k] = e
	m.write(k, append([]byte{}, e.value...), e.time, logged)
}

func (m *model) delete(k string, logged bool) {
	delete(m.now, k)
	m.write(k, nil, 1, logged)
}

func (m *model) write(k string, value []byte, timestamp int64, logged bool) {
	m.written[k] = logged
	put := m.tb.Put
	if !logged {
		put = m.tb.PutUnlogged
	}
	if err := put(modelStore, []byte(k), value, timestamp); err != nil {
		m.fatalf("put %q: %v", k, err)
	}
}

func (m *model) logged(k string) {
	if got, want := m.tb.Logged(modelStore, []byte(k)), m.written[k]; got != want {
		m.fatalf("%q was written logged: %v; want %v", k, got, want)
	}
}

func (m *model) deleteRange(from, to []byte) {
	if err := m.tb.DeleteRange(modelStore, from, to); err != nil {
		m.fatalf("delete range: %v", err)
	}
	maps.DeleteFunc(m.now, func(k string, _ modelEntry) bool { return within([]byte(k), from, to) })
	maps.DeleteFunc(m.written, func(k string, _ bool) bool { return within([]byte(k), from, to) })
}

func (m *model) seal() {
	s := m.tb.Seal(nil)
	m.pending = maps.Clone(m.database)
	for _, r := range s.Ranges() {
		maps.DeleteFunc(m.pending, func(k string, _ modelEntry) bool { return within([]byte(k), r.From, r.To) })
	}
	s.Sort()
	for i := range s.Len() {
		w := s.At(i)
		if w.Value == nil {
			delete(m.pending, string(w.Key))
		} else {
			m.pending[string(w.Key)] = modelEntry{string(w.Value), w.Timestamp}
		}
		if logged, ok := m.written[string(w.Key)]; !ok || logged == w.Unlogged {
			m.fatalf("sealed write of %q, unlogged %v; it was written: %v, logged: %v", w.Key, w.Unlogged, ok, logged)
		}
	}
	if s.Len() != len(m.written) {
		m.fatalf("%d sealed writes of %d keys", s.Len(), len(m.written))
	}
	if !maps.Equal(m.pending, m.now) {
		m.fatalf("the sealed writes do not make the database what it should be")
	}
	clear(m.written)
}

func (m *model) apply() {
	m.database, m.pending = m.pending, nil
	m.tb.Applied()
}

func (m *model) reset() {
	m.tb.Reset()
	m.pending, m.now = nil, maps.Clone(m.database)
	clear(m.written)
}

// load brings all of the database into the table, whatever is not applied.
func (m *model) load() {
	drops := m.tb.Drops()
	for k, e := range m.database {
		if !m.tb.Load(modelStore, []byte(k), append([]byte{}, e.value...), e.time) {
			return
		}
	}
	if m.tb.Drops() == drops {
		m.tb.SetComplete(modelStore, true)
	}
}

// scan is an open cursor over the running interval, and what it must still show.
type scan struct {
	c    *Cursor
	want []scanned
}

type scanned struct {
	key    string
	there  bool
	value  string
	logged bool
}

// scan opens a cursor: it must show the interval as it is now, whatever comes.
func (m *model) scan(from, to []byte, reverse bool) {
	x := &scan{c: new(Cursor)}
	for _, k := range slices.Sorted(maps.Keys(m.written)) {
		if within([]byte(k), from, to) {
			e, ok := m.now[k]
			x.want = append(x.want, scanned{k, ok, e.value, m.written[k]})
		}
	}
	if reverse {
		slices.Reverse(x.want)
	}
	m.tb.Open(x.c, modelStore, from, to, reverse)
	before := m.pending
	if before == nil {
		before = m.database
	}
	for k := range before {
		_, there := m.now[k]
		if _, written := m.written[k]; !there && !written && within([]byte(k), from, to) {
			if _, ok := x.c.Deletes([]byte(k)); !ok {
				m.fatalf("a scan does not say that %q was deleted", k)
			}
		}
	}
	m.scans = append(m.scans, x)
	m.check(x)
}

// check compares the write on which a cursor stands.
func (m *model) check(x *scan) {
	if x.c.Valid() != (len(x.want) > 0) {
		m.fatalf("cursor is valid: %v; it has %v to show", x.c.Valid(), x.want)
	}
	if !x.c.Valid() {
		return
	}
	w := x.c.Write()
	got := scanned{string(w.Key), w.Value != nil, string(w.Value), !w.Unlogged}
	if got != x.want[0] {
		m.fatalf("scan shows %v; want %v", got, x.want[0])
	}
}

// step moves one of the open cursors, or closes it.
func (m *model) step(i int, end bool) {
	if len(m.scans) == 0 {
		return
	}
	i %= len(m.scans)
	x := m.scans[i]
	m.check(x)
	if end || !x.c.Valid() {
		x.c.Close()
		m.scans = slices.Delete(m.scans, i, i+1)
		return
	}
	x.c.Next()
	x.want = x.want[1:]
	m.check(x)
}

// TestTableAgainstMaps runs short random histories that shrink.
func TestTableAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(rapid.SampledFrom([]int{0, 16 << 10, 1 << 20}).Draw(t, "budget"), t.Fatalf)
		if rapid.Bool().Draw(t, "complete") {
			m.tb.SetComplete(modelStore, true)
		}
		key := rapid.StringMatching("[a-h]{0,2}")
		bound := rapid.Ptr(key, true)
		bytesOf := func(s *string) []byte {
			if s == nil {
				return nil
			}
			return []byte(*s)
		}
		get := func(t *rapid.T) { m.get(key.Draw(t, "key")) }
		t.Repeat(map[string]func(*rapid.T){
			"get": get, "get2": get,
			"put": func(t *rapid.T) {
				k, n := key.Draw(t, "key"), rapid.IntRange(0, 2000).Draw(t, "length")
				m.put(k, modelEntry{strings.Repeat("v", n), rapid.Int64().Draw(t, "time")}, rapid.Bool().Draw(t, "logged"))
			},
			"delete":      func(t *rapid.T) { m.delete(key.Draw(t, "key"), rapid.Bool().Draw(t, "logged")) },
			"deleteRange": func(t *rapid.T) { m.deleteRange(bytesOf(bound.Draw(t, "from")), bytesOf(bound.Draw(t, "to"))) },
			"logged":      func(t *rapid.T) { m.logged(key.Draw(t, "key")) },
			"seal": func(t *rapid.T) {
				if m.pending != nil {
					t.Skip("sealed")
				}
				m.seal()
			},
			"apply": func(t *rapid.T) {
				if m.pending == nil {
					t.Skip("nothing sealed")
				}
				m.apply()
			},
			"reset": func(*rapid.T) { m.reset() },
			"budget": func(t *rapid.T) {
				m.tb.SetBudget(rapid.SampledFrom([]int{0, 16 << 10, 64 << 10, 1 << 20}).Draw(t, "budget"))
			},
			"load": func(t *rapid.T) { m.load() },
			"scan": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, indexAfter}).Draw(t, "times") {
					m.scan(bytesOf(bound.Draw(t, "from")), bytesOf(bound.Draw(t, "to")), rapid.Bool().Draw(t, "reverse"))
				}
			},
			"step":  func(t *rapid.T) { m.step(rapid.IntRange(0, 100).Draw(t, "which"), false) },
			"step2": func(t *rapid.T) { m.step(rapid.IntRange(0, 100).Draw(t, "which"), false) },
			"close": func(t *rapid.T) { m.step(rapid.IntRange(0, 100).Draw(t, "which"), true) },
		})
	})
}

// TestLongHistory deletes ranges more often than there are epochs, and more of them than
// are kept.
func TestLongHistory(t *testing.T) {
	for _, budget := range []int{8 << 10, 1 << 20} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			r := testseed.New(t)
			m := newModel(budget, t.Fatalf)
			key := func() string { return fmt.Sprintf("%03d", r.IntN(400)) }
			for i := range 40_000 {
				n := r.IntN(100)
				if i/1000%4 == 0 && n >= 95 {
					n = 91 // hardly a seal, many scans
				}
				switch {
				case n < 30:
					m.get(key())
				case n < 60:
					m.put(key(), modelEntry{strings.Repeat("v", r.IntN(30)), int64(i)}, n%2 == 0)
				case n < 65:
					m.delete(key(), n%2 == 0)
				case n < 70:
					m.logged(key())
				case n < 90:
					from := key()
					m.deleteRange([]byte(from), []byte(from+"~"))
				case n < 91:
					m.deleteRange(nil, []byte(key()))
				case n < 92:
					m.scan([]byte(key()), nil, i%2 == 0)
				case n < 93:
					for range 2 * len(m.scans) {
						m.step(r.IntN(100), false)
					}
					for len(m.scans) > 3 {
						m.step(r.IntN(100), true)
					}
				case n < 94:
					m.load()
				case m.pending == nil:
					m.seal()
				default:
					m.apply()
				}
			}
			if n := len(m.tb.ranges(modelStore)); n > 4*maxDeleted {
				t.Errorf("%d deleted ranges are still kept", n)
			}
		})
	}
}

// Expiry deletes from the same start again and again; nothing may gather.
func TestGrowingRangeIsOne(t *testing.T) {
	tb := New(1 << 20)
	for i := range 10_000 {
		k := fmt.Appendf(nil, "%05d", i)
		if err := tb.DeleteRange(1, nil, k); err != nil {
			t.Fatal(err)
		}
		put(t, tb, 1, string(k), "v")
		put(t, tb, 1, "", "first") // in the range, but written later
		want(t, tb, 1, "", "first", Present)
		want(t, tb, 1, string(k), "v", Present)
		if i > 0 {
			want(t, tb, 1, fmt.Sprintf("%05d", i-1), "", Absent)
		}
		if i%10 == 9 {
			s := tb.Seal(nil)
			if r := s.Ranges(); len(r) != 1 || !bytes.Equal(r[0].To, k) || s.Len() != 2 {
				t.Fatalf("sealed ranges %v and %d writes; want one up to %q, and two", r, s.Len(), k)
			}
			if i%100 == 99 {
				tb.Applied()
			}
		}
	}
	if n := len(tb.ranges(1)); n > 1 {
		t.Errorf("%d deleted ranges are kept", n)
	}
}

// A range hides an older version of an entry, which only a cursor can still reach, also
// after the epochs have begun anew.
func TestCursorOutlivesEpochs(t *testing.T) {
	tb := New(1 << 20)
	put(t, tb, 1, "a", "1")
	put(t, tb, 1, "k", "old")
	if err := tb.DeleteRange(1, []byte("k"), nil); err != nil {
		t.Fatal(err)
	}
	var cursors [indexAfter + 1]Cursor
	for i := range cursors {
		tb.Open(&cursors[i], 1, nil, nil, false)
		defer cursors[i].Close()
	}
	put(t, tb, 1, "k", "new")
	for i := range maxEpoch + 1 {
		k := fmt.Appendf(nil, "%05d", i)
		if err := tb.DeleteRange(2, k, append(k, 0)); err != nil {
			t.Fatal(err)
		}
	}
	c := &cursors[indexAfter]
	if !c.Valid() || string(c.Write().Key) != "a" {
		t.Fatal("the cursor does not show a")
	}
	if c.Next(); c.Valid() {
		t.Errorf("the cursor shows %q", c.Write().Key)
	}
}
