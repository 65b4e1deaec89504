package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/statestore"
)

// history does random things to a store and to a model of it, and compares what they show.
func history(r *rig) {
	rng := testseed.New(r.t)
	h := &player{r: r, rng: rng, now: newShadow(), committed: newShadow(), pace: []int64{100, 2000}[rng.IntN(2)]}
	for step := range 600 {
		switch n := rng.IntN(1000); {
		case n < 800:
			h.put()
			h.get()
		case n < 890 && h.sealed == nil:
			h.sealed, h.below = r.seal(), h.now.clone()
		case n < 980 && h.sealed != nil:
			r.commitSealed(h.sealed)
			h.sealed, h.committed = nil, h.below
		case n < 985:
			r.s.Drop()
			h.sealed, h.now = nil, h.committed.clone()
		case n < 990:
			r.reopen()
			h.sealed, h.now = nil, h.committed.clone()
		}
		if step%10 == 0 || step > 590 {
			h.compare(r, h.now, fmt.Sprint("step ", step))
		}
	}
	h.compare(r.elsewhere(), h.committed, "restored elsewhere")
}

type player struct {
	r                     *rig
	rng                   *rand.Rand
	now, below, committed *shadow
	sealed                *statestore.Sealed
	drift, pace           int64 // times grow, as those of records do
	written               []shadowKey
}

// shadow is one state of a store: what was put, by key and times.
type shadow struct {
	now  int64
	puts map[shadowKey]shadowValue
	n    int
}

type shadowKey struct {
	key      string
	from, to int64
	n        int // of duplicates
}

type shadowValue struct {
	value     string
	timestamp int64
	none      bool // a version that says that there is no value
}

func newShadow() *shadow { return &shadow{now: -1, puts: map[shadowKey]shadowValue{}} }

func (s *shadow) clone() *shadow { return &shadow{s.now, maps.Clone(s.puts), s.n} }

func (h *player) put() {
	key := awkward[h.rng.IntN(len(awkward))]
	if h.rng.IntN(2) == 0 {
		key = []string{"a", "a\x00", "ab"}[h.rng.IntN(3)]
	}
	h.drift += h.rng.Int64N(h.pace)
	at := max(h.drift-h.rng.Int64N(1+h.rng.Int64N(150_000)), 0)
	var value []byte
	if h.rng.IntN(4) > 0 {
		value = fmt.Append(nil, h.rng.IntN(1000))
	}
	v := shadowValue{string(value), at + 3, value == nil}
	retention := h.r.spec.Retention.Milliseconds()
	switch h.r.spec.Kind {
	case statestore.KindKeyValue, statestore.KindTimestampedKeyValue:
		h.r.must(h.r.keyValue().Put([]byte(key), value, v.timestamp))
		h.set(shadowKey{key: key}, v)
	case statestore.KindSession:
		end := at + h.rng.Int64N(100)
		h.now.now = max(h.now.now, end)
		if !h.expired(h.r.session().Put([]byte(key), value, at, end, v.timestamp), end) {
			h.set(shadowKey{key: key, from: at, to: end}, v)
		}
	case statestore.KindVersioned:
		at /= 20
		got, err := h.r.versioned().Put([]byte(key), value, at)
		h.r.must(err)
		if want := at >= h.now.now-retention; got.Stored != want {
			h.r.t.Fatalf("put %q at %d, stream time %d: stored is %v; want %v", key, at, h.now.now, got.Stored, want)
		}
		if got.Stored {
			h.now.now = max(h.now.now, at)
			h.now.puts[shadowKey{key: key, from: at}] = v
		}
	default:
		if value == nil && h.r.spec.RetainDuplicates {
			return
		}
		h.now.now = max(h.now.now, at)
		if !h.expired(h.r.window().Put([]byte(key), value, at, v.timestamp), at) {
			k := shadowKey{key: key, from: at}
			if h.r.spec.RetainDuplicates {
				h.now.n++
				k.n = h.now.n
			}
			h.set(k, v)
		}
	}
}

// get reads an entry that was put, or one that perhaps never was.
func (h *player) get() {
	k := shadowKey{key: awkward[h.rng.IntN(len(awkward))]}
	switch h.r.spec.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow, statestore.KindSession:
		k.from = max(h.drift-h.rng.Int64N(1000), 0)
		k.to = k.from + h.rng.Int64N(100)
	}
	if len(h.written) > 0 && h.rng.IntN(2) == 0 {
		k = h.written[h.rng.IntN(len(h.written))]
	}
	var got []byte
	var ok bool
	var err error
	at := int64(math.MaxInt64)
	switch h.r.spec.Kind {
	case statestore.KindKeyValue, statestore.KindTimestampedKeyValue:
		got, _, ok, err = h.r.keyValue().Get([]byte(k.key))
	case statestore.KindSession:
		got, ok, err = h.r.session().Get([]byte(k.key), k.from, k.to)
		at = k.to
	case statestore.KindVersioned:
		return // compareVersions does
	default:
		if h.r.spec.RetainDuplicates {
			return
		}
		k.to = 0
		got, _, ok, err = h.r.window().Get([]byte(k.key), k.from)
		at = k.from
	}
	h.r.must(err)
	v, want := h.now.puts[k]
	want = want && at > h.now.now-h.r.spec.Retention.Milliseconds()
	if ok != want || ok && string(got) != v.value {
		h.r.t.Fatalf("get %q, %d, %d at %d = %q, %v; want %q, %v", k.key, k.from, k.to, h.now.now, got, ok, v.value, want)
	}
}

func (h *player) set(k shadowKey, v shadowValue) {
	h.written = append(h.written, k)
	if v.none {
		delete(h.now.puts, k)
	} else {
		h.now.puts[k] = v
	}
}

// expired checks that a write was refused if its segment has expired.
func (h *player) expired(err error, at int64) bool {
	h.r.t.Helper()
	retention := h.r.spec.Retention.Milliseconds()
	segment := max(retention/2, 60_000)
	want := at/segment < max(h.now.now-retention, 0)/segment
	if errors.Is(err, statestore.ErrExpired) != want || err != nil && !want {
		h.r.t.Fatalf("put at %d, stream time %d: %v; to be refused: %v", at, h.now.now, err, want)
	}
	return want
}

// shows are the entries that reads show, as text and sorted.
func (s *shadow) shows(retention int64, text func(k shadowKey, v shadowValue) string, time func(k shadowKey) int64) []string {
	all := []string{}
	for k, v := range s.puts {
		if time(k) > s.now-retention {
			all = append(all, text(k, v))
		}
	}
	slices.Sort(all)
	return all
}

func (h *player) compare(r *rig, want *shadow, when string) {
	r.t.Helper()
	retention := r.spec.Retention.Milliseconds()
	var got, shown []string
	switch r.spec.Kind {
	case statestore.KindKeyValue, statestore.KindTimestampedKeyValue:
		kv := r.keyValue()
		got = list(r.t, kv.All(), entryText)
		shown = want.shows(math.MaxInt64, func(k shadowKey, v shadowValue) string {
			return entryText(statestore.Entry{Key: []byte(k.key), Value: []byte(v.value), Timestamp: stamp(kv, v.timestamp)})
		}, func(shadowKey) int64 { return 0 })
	case statestore.KindSession:
		got = list(r.t, r.session().All(), sessionText)
		shown = want.shows(retention, func(k shadowKey, v shadowValue) string {
			return sessionText(statestore.SessionEntry{Key: []byte(k.key), Start: k.from, End: k.to, Value: []byte(v.value)})
		}, func(k shadowKey) int64 { return k.to })
	case statestore.KindVersioned:
		h.compareVersions(r, want, when)
	default:
		w := r.window()
		got = list(r.t, w.All(), windowText)
		shown = want.shows(retention, func(k shadowKey, v shadowValue) string {
			e := statestore.WindowEntry{Key: []byte(k.key), Start: k.from, Value: []byte(v.value)}
			if w.Timestamped() {
				e.Timestamp = v.timestamp
			}
			return windowText(e)
		}, func(k shadowKey) int64 { return k.from })
	}
	slices.Sort(got)
	r.same(when, got, shown)
}

func (h *player) compareVersions(r *rig, s *shadow, when string) {
	r.t.Helper()
	v := r.versioned()
	for range 20 {
		key := awkward[h.rng.IntN(len(awkward))]
		at := s.now - h.rng.Int64N(r.spec.Retention.Milliseconds()+1)
		from, to, current := int64(-1), int64(0), true
		for k := range s.puts {
			switch {
			case k.key != key:
			case k.from <= at:
				from = max(from, k.from)
			case current || k.from < to:
				to, current = k.from, false
			}
		}
		want := "none"
		if p, ok := s.puts[shadowKey{key: key, from: from}]; ok && !p.none {
			want = versionText(statestore.Version{Key: []byte(key), Value: []byte(p.value), From: from, To: to, Current: current})
		}
		x, ok, err := v.GetAsOf([]byte(key), at)
		r.must(err)
		got := "none"
		if ok {
			got = versionText(x)
		}
		if got != want {
			r.t.Fatalf("%s: %q as of %d, stream time %d: %s; want %s", when, key, at, s.now, got, want)
		}
	}
}
