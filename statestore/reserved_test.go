package statestore

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// anyKeys are the hostile keys and random ones over few bytes, each once.
func anyKeys(rng *rand.Rand) []string {
	all := map[string]bool{}
	for _, k := range hostile() {
		all[string(k)] = true
	}
	for range 60 {
		b := make([]byte, rng.IntN(14))
		for i := range b {
			b[i] = []byte{0, 1, spaceData - 1, spaceData, 'c', 'm', 0xfe, 0xff}[rng.IntN(8)]
		}
		all[string(b)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// TestAnyKeyIsDumped: what a read-only view shows of each kind is what was put, whatever the
// bytes of the keys, and of each range of keys exactly those in it.
func TestAnyKeyIsDumped(t *testing.T) {
	rng := testseed.New(t)
	fs := vfs.NewMem()
	specs := append([]Spec{countsSpec, latestSpec}, kindSpecs[:5]...)
	s := openStore(t, "t", memOptions(fs), specs...)
	keys := anyKeys(rng)
	for _, p := range specs {
		for _, k := range keys {
			putOne(t, s, p, []byte(k))
		}
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"counts": At(3)})
	must(t, s.Close())

	v := readOnly(t, "t", ReadOptions{FS: fs})
	dumped := func(p Spec, from, to []byte) (got []string) {
		for e, err := range v.Entries(p.Name, from, to) {
			must(t, err)
			if !bytes.Equal(e.Key, e.Value) {
				t.Errorf("%s: key %x has value %x", p.Name, e.Key, e.Value)
			}
			got = append(got, string(e.Key))
		}
		slices.Sort(got)
		return got
	}
	for _, p := range specs {
		if got := dumped(p, nil, nil); !slices.Equal(got, keys) {
			t.Errorf("%s: all gives %q; want %q", p.Name, got, keys)
		}
		for i, k := range keys {
			if got := dumped(p, []byte(k), append([]byte(k), 0)); !slices.Equal(got, keys[i:i+1]) {
				t.Errorf("%s: key %q alone gives %q", p.Name, k, got)
			}
			j := rng.IntN(len(keys))
			if got := dumped(p, []byte(k), []byte(keys[j])); !slices.Equal(got, keys[min(i, j):j]) {
				t.Errorf("%s: %q to %q gives %q; want %q", p.Name, k, keys[j], got, keys[min(i, j):j])
			}
		}
	}
	if m := v.Metadata(); m.CommitID != (CommitID{1, 1}) {
		t.Errorf("the metadata: %+v", m)
	}
}

// putOne puts a key with itself as the value.
func putOne(t *testing.T, s *TaskStore, p Spec, key []byte) {
	t.Helper()
	st := s.storeNamed(t, p.Name)
	switch {
	case st.session != nil:
		must(t, st.session.Put(key, key, 70_000, 70_001, 1))
	case st.versioned != nil:
		_, err := st.versioned.Put(key, key, 70_000)
		must(t, err)
	case st.window != nil:
		must(t, st.window.Put(key, key, 70_000, 1))
	default:
		must(t, handle(t, s, p.Name).Put(key, key, 1))
	}
}

// TestRangeOfAnyKeys deletes between any keys, in a store whose neighbours have the same keys.
func TestRangeOfAnyKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, o Options) {
		rng := testseed.New(t)
		unlogged := Spec{Name: "middle", Kind: KindKeyValue}
		s := openStore(t, "t", o, countsSpec, unlogged, latestSpec)
		keys := anyKeys(rng)
		left := slices.Clone(keys)
		for _, p := range []Spec{countsSpec, unlogged, latestSpec} {
			for _, k := range keys {
				putOne(t, s, p, []byte(k))
			}
		}
		for n := range int64(40) {
			from, to := keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))]
			must(t, handle(t, s, "middle").DeleteRange([]byte(from), []byte(to), 1))
			left = slices.DeleteFunc(left, func(k string) bool { return k >= from && k < to })
			for _, p := range []Spec{countsSpec, unlogged, latestSpec} {
				want := keys
				if p.Name == "middle" {
					want = left
				}
				var got []string
				for _, e := range collect(t, handle(t, s, p.Name).All()) {
					got = append(got, string(e.Key))
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s after deleting %q to %q: %q; want %q", p.Name, from, to, got, want)
				}
			}
			if n%3 == 0 {
				commit(t, s, Progress{ID: CommitID{1, n + 1}}, nil)
			}
			k := keys[rng.IntN(len(keys))]
			putOne(t, s, unlogged, []byte(k))
			if i, found := slices.BinarySearch(left, k); !found {
				left = slices.Insert(left, i, k)
			}
		}
		if s.CommitID().Number == 0 {
			t.Error("the metadata is gone")
		}
	})
}
