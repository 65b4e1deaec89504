package storetest

import (
	"bytes"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

var keyValueTests = []test{
	{"writes", keyValueWrites}, {"awkward keys", keyValueAwkward}, {"scans see their beginning", keyValueScans},
	{"range deletes", keyValueRangeDeletes}, {"commits during a scan", keyValueCommitsDuringScan},
}

// stamp gives what a store with or without timestamps shows of one.
func stamp(kv *statestore.KeyValue, timestamp int64) int64 {
	if kv.Timestamped() {
		return timestamp
	}
	return 0
}

// keyValueWrites: what is written is seen at once, kept over commits and restarts, and gone
// after a drop, in whatever state its key was before.
func keyValueWrites(r *rig) {
	kv := r.keyValue()
	put := func(key string, value []byte, timestamp int64) {
		r.t.Helper()
		r.must(kv.Put([]byte(key), value, timestamp))
	}
	want := func(when, key, value string) {
		r.t.Helper()
		got, timestamp, ok, err := kv.Get([]byte(key))
		r.must(err)
		if !ok || string(got) != value || timestamp != stamp(kv, int64(len(value)+1)) {
			r.t.Fatalf("%s: get %q = %q at %d, %v; want %q", when, key, got, timestamp, ok, value)
		}
	}
	none := func(when, key string) {
		r.t.Helper()
		if got, _, ok, err := kv.Get([]byte(key)); ok || err != nil {
			r.t.Fatalf("%s: get %q = %q, %v; want nothing", when, key, got, err)
		}
	}
	none("before all", "a")
	put("a", []byte("one"), 4)
	put("b", []byte{}, 1)
	want("in the interval", "a", "one")
	want("in the interval", "b", "")
	x := r.seal()
	put("a", []byte("three"), 6)
	r.must(kv.Delete([]byte("b"), 9))
	want("over a sealed interval", "a", "three")
	none("over a sealed interval", "b")
	r.commitSealed(x)
	want("over a committed interval", "a", "three")
	r.s.Drop()
	want("after a drop", "a", "one")
	want("after a drop", "b", "")
	r.must(kv.Delete([]byte("a"), 9))
	r.commit()
	r.reopen()
	kv = r.keyValue()
	none("after a restart", "a")
	want("after a restart", "b", "")
	r.same("the changelog", changes(r), []string{"a=one@4", "b=@1", "a deleted@9"})
}

func changes(r *rig) (all []string) {
	for _, c := range r.log {
		all = append(all, changeText(c))
	}
	return all
}

func keyValueAwkward(r *rig) {
	kv := r.keyValue()
	for i, key := range awkward {
		if i == len(awkward)/2 {
			r.commit() // half of them in the database
		}
		r.must(kv.Put([]byte(key), []byte(key+"!"), 1))
	}
	r.must(kv.Put(nil, []byte("!"), 1)) // the empty key
	sorted := slices.Clone(awkward)
	slices.Sort(sorted)
	check := func(when string) {
		r.t.Helper()
		for _, key := range awkward {
			v, _, ok, err := kv.Get([]byte(key))
			r.must(err)
			if !ok || string(v) != key+"!" {
				r.t.Fatalf("%s: get %q = %q, %v", when, key, v, ok)
			}
			var with, from []string
			for _, k := range sorted {
				if bytes.HasPrefix([]byte(k), []byte(key)) {
					with = append(with, k)
				}
				if k >= key {
					from = append(from, k)
				}
			}
			keys := func(e statestore.Entry) string { return string(e.Key) }
			r.same(when+": prefix scan", list(r.t, kv.PrefixScan([]byte(key)), keys), with)
			r.same(when+": range", list(r.t, kv.Range([]byte(key), nil), keys), from)
			slices.Reverse(from)
			r.same(when+": reverse range", list(r.t, kv.ReverseRange([]byte(key), nil), keys), from)
			r.same(when+": range to itself", list(r.t, kv.Range([]byte(key), []byte(key)), keys), nil)
		}
		r.same(when+": all", list(r.t, kv.All(), func(e statestore.Entry) string { return string(e.Key) }), sorted)
	}
	check("in the interval")
	r.commit()
	check("committed")
	r.reopen()
	kv = r.keyValue()
	check("after a restart")
	kv = r.elsewhere().keyValue()
	check("restored")
}

func keyValueScans(r *rig) {
	kv := r.keyValue()
	for _, key := range []string{"a", "c", "e"} {
		r.must(kv.Put([]byte(key), []byte("database"), 1))
	}
	r.commit()
	r.must(kv.Put([]byte("b"), []byte("sealed"), 1))
	r.must(kv.Delete([]byte("c"), 1))
	r.seal() // and dropped below
	r.must(kv.Put([]byte("d"), []byte("running"), 1))
	r.must(kv.Put([]byte("e"), []byte("running"), 1))
	want := []string{`"a"="database"`, `"b"="sealed"`, `"d"="running"`, `"e"="running"`}
	if kv.Timestamped() {
		for i := range want {
			want[i] += "@1"
		}
	}
	all := func(seq func(func(statestore.Entry, error) bool)) []string {
		var got []string
		for e, err := range seq {
			r.must(err)
			got = append(got, entryText(e))
			r.must(kv.Delete(e.Key, 2)) // not seen by the loop
			r.must(kv.Put(append([]byte("z"), e.Key...), []byte("new"), 2))
			r.must(kv.Put(append([]byte("B"), e.Key...), []byte("new"), 2))
		}
		return got
	}
	r.same("scan", all(kv.All()), want)
	r.s.Drop()
	if n := len(list(r.t, kv.All(), entryText)); n != 3 {
		r.t.Fatalf("%d entries after a drop; want 3", n)
	}
	for _, key := range []string{"b", "c", "d", "e"} {
		r.must(kv.Delete([]byte(key), 1))
	}
	r.must(kv.Put([]byte("b"), []byte("sealed"), 1))
	x := r.seal()
	r.must(kv.Put([]byte("d"), []byte("running"), 1))
	r.must(kv.Put([]byte("e"), []byte("running"), 1))
	slices.Reverse(want)
	r.same("reverse scan", all(kv.ReverseAll()), want)
	for range kv.All() { //nolint:errcheck // it is left at once
		break // a loop that is left gives everything back
	}
	r.commitSealed(x)
}

func keyValueRangeDeletes(r *rig) {
	kv := r.keyValue()
	fill := func() {
		r.t.Helper()
		for i, key := range awkward {
			r.must(kv.Put([]byte(key), []byte("v"), 1))
			if i == len(awkward)/2 {
				r.commit()
			}
		}
	}
	for _, bounds := range [][2]string{{"", "a"}, {"\x00", "\xff"}, {"a", "a\x00"}, {"\xff\xff", "nil"}, {"b", "a"}} {
		fill()
		from, to := []byte(bounds[0]), []byte(bounds[1])
		if bounds[1] == "nil" {
			to = nil
		}
		r.must(kv.DeleteRange(from, to, 2))
		var want []string
		for _, key := range awkward {
			gone := key >= bounds[0] && (to == nil || key < bounds[1])
			if !gone {
				want = append(want, key)
			}
			if _, _, ok, err := kv.Get([]byte(key)); err != nil || ok == gone {
				r.t.Fatalf("get %q after deleting %q to %q: %v, %v", key, from, to, ok, err)
			}
		}
		slices.Sort(want)
		keys := func(e statestore.Entry) string { return string(e.Key) }
		r.same("after a range delete", list(r.t, kv.All(), keys), want)
		r.commit()
		r.same("after a range delete, committed", list(r.t, kv.All(), keys), want)
		r.reopen()
		kv = r.keyValue()
		r.same("after a range delete and a restart", list(r.t, kv.All(), keys), want)
	}
}

// keyValueCommitsDuringScan: another goroutine commits while the owner reads.
func keyValueCommitsDuringScan(r *rig) {
	kv := r.keyValue()
	for c := byte('a'); c <= 'z'; c++ {
		r.must(kv.Put([]byte{c}, []byte("before"), 1))
	}
	r.commit()
	for c := byte('a'); c <= 'z'; c += 2 {
		r.must(kv.Delete([]byte{c}, 1))
	}
	x := r.seal()
	n := 0
	done := make(chan error, 1)
	for e, err := range kv.All() {
		r.must(err)
		if n == 0 {
			go func() { done <- r.s.Commit(x, map[string]statestore.Offset{r.spec.Name: statestore.At(1)}) }()
			r.must(<-done)
		}
		if want := []byte{byte('b' + 2*n)}; !bytes.Equal(e.Key, want) || string(e.Value) != "before" {
			r.t.Fatalf("entry %d is %q=%q; want %q", n, e.Key, e.Value, want)
		}
		n++
	}
	r.s.Release(x)
	if n != 13 {
		r.t.Fatalf("%d entries; want 13", n)
	}
}
