package storetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

var versionedTests = []test{{"puts", versionedPuts}, {"versions", versionedVersions}, {"history's end", versionedEnd}, {"awkward keys", versionedAwkward}}

// versionedPuts: each put, in order or not, is one record of the changelog, whatever it moves.
func versionedPuts(r *rig) {
	v := r.versioned()
	put := func(value string, at int64, want statestore.PutResult) {
		r.t.Helper()
		var b []byte
		if value != "nil" {
			b = []byte(value)
		}
		if got, err := v.Put([]byte("k"), b, at); err != nil || got != want {
			r.t.Fatalf("put %s at %d = %+v, %v; want %+v", value, at, got, err, want)
		}
	}
	asOf := func(at int64, want string) {
		r.t.Helper()
		x, ok, err := v.GetAsOf([]byte("k"), at)
		r.must(err)
		if got := versionText(x); ok && got != want || !ok && want != "none" {
			r.t.Fatalf("as of %d: %s, %v; want %s", at, got, ok, want)
		}
	}
	current := statestore.PutResult{Stored: true, Current: true}
	until := func(t int64) statestore.PutResult { return statestore.PutResult{Stored: true, ValidTo: t} }
	put("one", 10, current)
	put("three", 30, current)
	put("two", 20, until(30)) // out of order
	r.commit()
	put("nil", 40, current)
	x := r.seal()
	put("four", 35, until(40)) // moves what is in the database, below a sealed interval
	put("four again", 35, until(40))
	put("nil", 25, until(30))
	asOf(22, `"k"="two" from 20 to 25`)
	asOf(27, "none")
	asOf(37, `"k"="four again" from 35 to 40`)
	r.commitSealed(x)
	r.commit()
	r.reopen()
	v = r.versioned()
	asOf(9, "none")
	asOf(10, `"k"="one" from 10 to 20`)
	asOf(34, `"k"="three" from 30 to 35`)
	asOf(40, "none")
	before, ok, err := v.Delete([]byte("k"), 15)
	if err != nil || !ok || versionText(before) != `"k"="one" from 10 to 20` {
		r.t.Fatalf("delete gives %s, %v, %v", versionText(before), ok, err)
	}
	put("zero", 0, until(10))
	put("five", 50, current)
	r.commit()
	r.same("the changelog, of each commit by time", changes(r), []string{"k=one@10", "k=two@20", "k=three@30", "k deleted@40", "k deleted@25", "k=four again@35",
		"k=zero@0", "k deleted@15", "k=five@50"})
	want := []string{`"k"="zero" from 0 to 10`, `"k"="one" from 10 to 15`, `"k"="two" from 20 to 25`, `"k"="three" from 30 to 35`, `"k"="four again" from 35 to 40`, `"k"="five" from 50`}
	r.same("versions", list(r.t, v.Versions([]byte("k"), 0, math.MaxInt64), versionText), want)
	r.same("restored", list(r.t, r.elsewhere().versioned().All(), versionText), want)
}

func versionedVersions(r *rig) {
	v := r.versioned()
	for _, at := range []int64{0, 2_500, 4_000, 4_500} { // the history has segments of 2 s
		_, err := v.Put([]byte("k"), fmt.Append(nil, at), at)
		r.must(err)
		_, err = v.Put([]byte("l"), fmt.Append(nil, at), at)
		r.must(err)
	}
	r.places(func(r *rig, when string) {
		r.t.Helper()
		v := r.versioned()
		all := []string{`"k"="0" from 0 to 2500`, `"k"="2500" from 2500 to 4000`, `"k"="4000" from 4000 to 4500`, `"k"="4500" from 4500`}
		versions := func(from, to int64) []string {
			return list(r.t, v.Versions([]byte("k"), from, to), versionText)
		}
		r.same(when+": all of a key", versions(math.MinInt64, math.MaxInt64), all)
		r.same(when+": those valid up to a time, inclusive", versions(0, 2_500), all[:2])
		r.same(when+": those valid from a time on", versions(4_000, 4_100), all[2:3])
		r.same(when+": from before the end of one", versions(3_999, 4_000), all[1:3])
		r.same(when+": nothing", versions(10, 9), nil)
		slices.Reverse(all)
		r.same(when+": newest first", list(r.t, v.ReverseVersions([]byte("k"), 0, math.MaxInt64), versionText), all)
	})
	n := 0
	v = r.versioned()
	for x, err := range v.Versions([]byte("k"), 0, math.MaxInt64) { // sees its beginning
		r.must(err)
		_, err = v.Put([]byte("k"), []byte("new"), x.From+1)
		r.must(err)
		n++
	}
	if n != 4 {
		r.t.Fatalf("%d versions in a loop that writes; want the 4 of its beginning", n)
	}
}

func versionedEnd(r *rig) {
	v := r.versioned()
	put := func(key string, at int64) statestore.PutResult {
		r.t.Helper()
		got, err := v.Put([]byte(key), fmt.Append(nil, at), at)
		r.must(err)
		return got
	}
	put("old", 100)
	put("k", 100)
	put("k", 200)
	r.commit()
	put("k", 5_150)
	asOf := func(key string, at int64) (string, bool) {
		r.t.Helper()
		x, ok, err := v.GetAsOf([]byte(key), at)
		r.must(err)
		return string(x.Value), ok
	}
	for range 2 {
		if got, ok := asOf("k", 149); ok {
			r.t.Fatalf("as of before the history: %s", got)
		}
		if got, _ := asOf("k", 150); got != "100" {
			r.t.Fatalf("as of the beginning of the history: %q; want 100", got)
		}
		if got, _ := asOf("old", 120); got != "100" {
			r.t.Fatalf("the newest version, as of before the history: %q; want 100", got)
		}
		if got := put("k", 149); got.Stored {
			r.t.Fatalf("a version older than the history was stored: %+v", got)
		}
		r.commit()
		r.reopen()
		v = r.versioned()
	}
	put("other", 100_000) // everything but the newest versions expires
	r.commit()
	want := []string{`"k"="5150" from 5150`, `"old"="100" from 100`, `"other"="100000" from 100000`}
	r.same("all", list(r.t, v.All(), versionText), want)
	r.reopen()
	r.same("all, after a restart", list(r.t, r.versioned().All(), versionText), want)
	r.same("all, restored", list(r.t, r.elsewhere().versioned().All(), versionText), want)
	for _, at := range []int64{-1, math.MaxInt64} {
		if _, err := r.versioned().Put(nil, nil, at); err == nil {
			r.t.Fatalf("put at %d: no error", at)
		}
	}
}

func versionedAwkward(r *rig) {
	v := r.versioned()
	for _, key := range awkward {
		for _, at := range []int64{5, 6, 2_005} {
			_, err := v.Put([]byte(key), fmt.Append(nil, key, at), at)
			r.must(err)
		}
	}
	r.places(func(r *rig, when string) {
		r.t.Helper()
		v := r.versioned()
		for _, key := range awkward {
			want := []string{fmt.Sprint(key, 5), fmt.Sprint(key, 6), fmt.Sprint(key, 2_005)}
			r.same(when+": versions", list(r.t, v.Versions([]byte(key), 0, math.MaxInt64), func(x statestore.Version) string { return string(x.Value) }), want)
			if x, ok, err := v.GetAsOf([]byte(key), 5); err != nil || !ok || string(x.Value) != want[0] || string(x.Key) != key {
				r.t.Fatalf("%s: %q as of 5 is %q, %v, %v", when, key, x.Value, ok, err)
			}
		}
		if n := len(list(r.t, v.All(), versionText)); n != 3*len(awkward) {
			r.t.Fatalf("%s: %d versions in all; want %d", when, n, 3*len(awkward))
		}
	})
}
