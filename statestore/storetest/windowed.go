package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

var windowTests = []test{{"fetches", windowFetches}, {"retention", windowRetention}, {"awkward keys", windowAwkward}, {"foreign changelog", foreignChangelog}}

var sessionTests = []test{{"finds", sessionFinds}, {"retention", sessionRetention}, {"awkward keys", sessionAwkward}, {"foreign changelog", foreignChangelog}}

func changeText(c statestore.RestoreRecord) string {
	if c.Value == nil {
		return fmt.Sprintf("%s deleted@%d", c.Key, c.Timestamp)
	}
	return fmt.Sprintf("%s=%s@%d", c.Key, c.Value, c.Timestamp)
}

// places runs check with what was written in the interval, below a sealed one, committed, after a
// restart, and restored elsewhere.
func (r *rig) places(check func(at *rig, when string)) {
	r.t.Helper()
	check(r, "in the interval")
	x := r.seal()
	check(r, "sealed")
	r.commitSealed(x)
	check(r, "committed")
	r.reopen()
	check(r, "after a restart")
	check(r.elsewhere(), "restored")
}

func windowFetches(r *rig) {
	w := r.window()
	put := func(key string, start int64) {
		r.t.Helper()
		r.must(w.Put([]byte(key), fmt.Append(nil, key, start), start, start+1))
	}
	text := func(key string, start int64) string {
		e := statestore.WindowEntry{Key: []byte(key), Start: start, Value: fmt.Append(nil, key, start)}
		if w.Timestamped() {
			e.Timestamp = start + 1
		}
		return windowText(e)
	}
	for _, start := range []int64{0, 10, 59_999, 60_000, 60_010, 90_000} {
		put("a", start)
		put("b", start)
	}
	r.must(w.Put([]byte("b"), nil, 10, 99))
	r.places(func(r *rig, when string) {
		r.t.Helper()
		w := r.window()
		r.same(when+": fetch", list(r.t, w.Fetch([]byte("a"), 10, 60_000), windowText), []string{text("a", 10), text("a", 59_999), text("a", 60_000)})
		r.same(when+": reverse fetch", list(r.t, w.ReverseFetch([]byte("a"), 10, 60_000), windowText), []string{text("a", 60_000), text("a", 59_999), text("a", 10)})
		r.same(when+": fetch of a deleted window", list(r.t, w.Fetch([]byte("b"), 5, 15), windowText), nil)
		all := []string{text("a", 10), text("a", 59_999), text("b", 59_999), text("a", 60_000), text("a", 60_010), text("b", 60_000), text("b", 60_010)}
		r.same(when+": fetch all, by segment, key and start", list(r.t, w.FetchAll(10, 60_010), windowText), all)
		r.same(when+": a range of keys", list(r.t, w.FetchRange([]byte("b"), nil, 10, 60_010), windowText), []string{all[2], all[5], all[6]})
		slices.Reverse(all)
		r.same(when+": reverse fetch all", list(r.t, w.ReverseFetchAll(10, 60_010), windowText), all)
		if n := len(list(r.t, w.All(), windowText)); n != 11 {
			r.t.Fatalf("%s: %d entries in all; want 11", when, n)
		}
		v, timestamp, ok, err := w.Get([]byte("a"), 60_010)
		if err != nil || !ok || string(v) != "a60010" || w.Timestamped() != (timestamp == 60_011) {
			r.t.Fatalf("%s: get = %q at %d, %v, %v", when, v, timestamp, ok, err)
		}
		if _, _, ok, err := w.Get([]byte("b"), 10); ok || err != nil {
			r.t.Fatalf("%s: a deleted window is there (%v)", when, err)
		}
		if w.StreamTime() != 90_000 {
			r.t.Fatalf("%s: stream time %d; want 90000", when, w.StreamTime())
		}
	})
}

// windowRetention: reads show what is less than the retention older than the largest start;
// a write is refused only where a whole segment is older; a late one is kept.
func windowRetention(r *rig) {
	w, key := r.window(), []byte("k")
	put := func(start int64) error { return w.Put(key, []byte("v"), start, start) }
	starts := func() []string {
		return list(r.t, w.All(), func(e statestore.WindowEntry) string { return fmt.Sprint(e.Start) })
	}
	for _, start := range []int64{0, 59_999, 60_000, 100_000} {
		r.must(put(start))
	}
	r.same("at the edge of the retention", starts(), []string{"59999", "60000", "100000"})
	r.commit()
	r.must(put(170_000))
	r.same("later", starts(), []string{"100000", "170000"})
	r.must(put(60_001)) // its segment is kept, and it is not shown
	r.same("after a write that is too old to be read", starts(), []string{"100000", "170000"})
	if err := put(59_999); !errors.Is(err, statestore.ErrExpired) {
		r.t.Fatalf("a write into an expired segment: %v; want ErrExpired", err)
	}
	r.must(put(60_002))
	r.commit()
	r.must(put(60_003)) // late, and inside the retention: never lost
	r.must(put(100_001))
	r.commit()
	r.reopen()
	w = r.window()
	r.same("after a restart", starts(), []string{"100000", "100001", "170000"})
	if w.StreamTime() != 170_000 {
		r.t.Fatalf("stream time %d after a restart; want 170000", w.StreamTime())
	}
	if err := put(0); !errors.Is(err, statestore.ErrExpired) {
		r.t.Fatalf("a write into an expired segment after a restart: %v; want ErrExpired", err)
	}
	r.must(put(10_000_000))
	r.s.Drop()
	r.must(put(170_001)) // the drop took stream time back, too
	r.same("after a drop", starts(), []string{"100000", "100001", "170000", "170001"})
	for _, start := range []int64{-1, math.MaxInt64} {
		if err := put(start); err == nil || errors.Is(err, statestore.ErrExpired) {
			r.t.Fatalf("put at %d: %v; want an error of its own", start, err)
		}
	}
}

func windowAwkward(r *rig) {
	w := r.window()
	for _, key := range awkward {
		for _, start := range []int64{5, 60_005} {
			r.must(w.Put([]byte(key), []byte(key), start, start))
		}
	}
	sorted := slices.Clone(awkward)
	slices.Sort(sorted)
	r.places(func(r *rig, when string) {
		r.t.Helper()
		w := r.window()
		for _, key := range awkward {
			starts := func(e statestore.WindowEntry) string { return fmt.Sprintf("%q@%d", e.Value, e.Start) }
			want := []string{fmt.Sprintf("%q@5", key), fmt.Sprintf("%q@60005", key)}
			r.same(when+": fetch", list(r.t, w.Fetch([]byte(key), 0, math.MaxInt64), starts), want)
			if v, _, ok, err := w.Get([]byte(key), 5); err != nil || !ok || string(v) != key {
				r.t.Fatalf("%s: get %q = %q, %v, %v", when, key, v, ok, err)
			}
			from := sorted[slices.Index(sorted, key):]
			got := list(r.t, w.FetchRange([]byte(key), nil, 5, 5), func(e statestore.WindowEntry) string { return string(e.Key) })
			slices.Sort(got)
			r.same(when+": the keys from one on", got, from)
			got = list(r.t, w.FetchRange(nil, []byte(key), 5, 5), func(e statestore.WindowEntry) string { return string(e.Key) })
			slices.Sort(got)
			r.same(when+": the keys before one", got, sorted[:len(sorted)-len(from)])
		}
	})
}

// duplicates: every value put for a key and start is kept, in the order of the puts.
func duplicates(r *rig) {
	w := r.window()
	for i, start := range []int64{10, 10, 5, 10} {
		r.must(w.Put([]byte("k"), fmt.Append(nil, i), start, 1))
	}
	r.must(w.Put([]byte("k"), nil, 10, 1)) // which one is not said: nothing
	r.places(func(r *rig, when string) {
		r.t.Helper()
		w := r.window()
		text := func(e statestore.WindowEntry) string { return string(e.Value) }
		r.same(when+": fetch", list(r.t, w.Fetch([]byte("k"), 0, 20), text), []string{"2", "0", "1", "3"})
		if v, _, ok, err := w.Get([]byte("k"), 10); err != nil || !ok || string(v) != "3" {
			r.t.Fatalf("%s: get = %q, %v, %v; want the one put last, 3", when, v, ok, err)
		}
	})
	for _, at := range []*rig{r, r.elsewhere()} { // numbers are not given again
		w := at.window()
		r.must(w.Put([]byte("k"), []byte("4"), 10, 1))
		text := func(e statestore.WindowEntry) string { return string(e.Value) }
		at.same("one more", list(at.t, w.Fetch([]byte("k"), 10, 10), text), []string{"0", "1", "3", "4"})
	}
}

func sessionFinds(r *rig) {
	x := r.session()
	for _, s := range [][2]int64{{0, 10}, {5, 10}, {20, 30}, {59_000, 61_000}, {70_000, 70_000}} {
		for _, key := range []string{"a", "b"} {
			r.must(x.Put([]byte(key), fmt.Append(nil, s[1]), s[0], s[1], s[1]))
		}
	}
	r.must(x.Remove([]byte("b"), 20, 30, 99))
	text := func(key string, start, end int64) string {
		return sessionText(statestore.SessionEntry{Key: []byte(key), Start: start, End: end, Value: fmt.Append(nil, end)})
	}
	r.places(func(r *rig, when string) {
		r.t.Helper()
		x := r.session()
		found := []string{text("a", 0, 10), text("a", 5, 10), text("a", 20, 30)}
		r.same(when+": find", list(r.t, x.Find([]byte("a"), 10, 20), sessionText), found)
		slices.Reverse(found)
		r.same(when+": reverse find", list(r.t, x.ReverseFind([]byte("a"), 10, 20), sessionText), found)
		r.same(when+": find over segments", list(r.t, x.Find([]byte("a"), 30, 69_999), sessionText), []string{text("a", 20, 30), text("a", 59_000, 61_000)})
		r.same(when+": find in a range of keys", list(r.t, x.FindRange([]byte("b"), nil, 10, 20), sessionText), []string{text("b", 0, 10), text("b", 5, 10)})
		r.same(when+": by end", list(r.t, x.FindByEnd(10, 61_000), sessionText), []string{text("a", 0, 10), text("a", 5, 10), text("b", 0, 10), text("b", 5, 10),
			text("a", 20, 30), text("a", 59_000, 61_000), text("b", 59_000, 61_000)})
		if n := len(list(r.t, x.Fetch([]byte("b")), sessionText)); n != 4 {
			r.t.Fatalf("%s: %d sessions of b; want 4", when, n)
		}
		if v, ok, err := x.Get([]byte("a"), 20, 30); err != nil || !ok || string(v) != "30" {
			r.t.Fatalf("%s: get = %q, %v, %v", when, v, ok, err)
		}
		if _, ok, err := x.Get([]byte("b"), 20, 30); ok || err != nil {
			r.t.Fatalf("%s: a removed session is there (%v)", when, err)
		}
	})
}

func sessionRetention(r *rig) {
	x, key := r.session(), []byte("k")
	put := func(start, end int64) error { return x.Put(key, []byte("v"), start, end, end) }
	ends := func() []string {
		return list(r.t, x.All(), func(e statestore.SessionEntry) string { return fmt.Sprint(e.End) })
	}
	r.must(put(0, 50))
	r.must(put(0, 60_000))
	r.must(put(0, 170_000)) // it began long ago, and ended now
	r.same("kept", ends(), []string{"170000"})
	r.must(put(0, 60_001))
	if err := put(0, 59_999); !errors.Is(err, statestore.ErrExpired) {
		r.t.Fatalf("a session in an expired segment: %v; want ErrExpired", err)
	}
	r.must(x.Remove(key, 0, 50, 1)) // nothing to refuse
	r.must(put(0, 60_002))
	r.commit()
	r.reopen()
	x = r.session()
	r.must(put(0, 100_001))
	r.same("after a restart", ends(), []string{"100001", "170000"})
	r.same("what has closed, shown or not", list(r.t, x.FindByEnd(60_001, 100_000), func(e statestore.SessionEntry) string { return fmt.Sprint(e.End) }), []string{"60001", "60002"})
	for _, s := range [][2]int64{{-1, 5}, {170_000, 169_999}, {0, math.MaxInt64}} {
		if err := put(s[0], s[1]); err == nil || errors.Is(err, statestore.ErrExpired) {
			r.t.Fatalf("put %v: %v; want an error of its own", s, err)
		}
	}
}

func sessionAwkward(r *rig) {
	x := r.session()
	for _, key := range awkward {
		r.must(x.Put([]byte(key), []byte(key), 5, 5, 1))
	}
	r.places(func(r *rig, when string) {
		r.t.Helper()
		x := r.session()
		for _, key := range awkward {
			text := func(e statestore.SessionEntry) string { return string(e.Value) }
			r.same(when+": fetch", list(r.t, x.Fetch([]byte(key)), text), []string{key})
			r.same(when+": range", list(r.t, x.FetchRange([]byte(key), append([]byte(key), 0)), text), []string{key})
			if v, ok, err := x.Get([]byte(key), 5, 5); err != nil || !ok || string(v) != key {
				r.t.Fatalf("%s: get %q = %q, %v, %v", when, key, v, ok, err)
			}
		}
	})
}

// foreignChangelog: what is not a key of the kind is refused as a whole, and nothing of it
// is written.
func foreignChangelog(r *rig) {
	good := make([]byte, 20)
	for _, bad := range [][]byte{nil, {}, []byte("short"), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		err := r.s.Restore(r.spec.Name, []statestore.RestoreRecord{{Key: good, Value: []byte("v")}, {Key: bad, Value: []byte("v")}}, 2)
		if err == nil {
			r.t.Fatalf("key %x was restored", bad)
		}
	}
	states, err := r.s.Stores()
	r.must(err)
	if !states[0].Empty || !states[0].Offset.IsAbsent() {
		r.t.Fatalf("after refused records: %+v", states[0])
	}
	r.must(r.s.Err())
}
