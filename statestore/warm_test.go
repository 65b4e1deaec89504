package statestore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestWarmMakesComplete(t *testing.T) {
	fs := vfs.NewMem()
	o := memOptions(fs)
	s := openStore(t, "t", o, countsSpec, latestSpec)
	for _, name := range []string{"counts", "latest"} {
		for i := range 1000 {
			must(t, handle(t, s, name).Put(fmt.Append(nil, i), []byte(name), int64(i)))
		}
	}
	commit(t, s, Progress{}, nil)
	must(t, s.Close())

	warm := func(o Options, n int) (*TaskStore, int) {
		s := openStore(t, "t", o, countsSpec, latestSpec)
		turns := 1
		for ; ; turns++ {
			if turns == 3 { // a write between the turns counts, not what the scan finds later
				must(t, handle(t, s, "latest").Put([]byte("999"), []byte("new"), 1))
				must(t, handle(t, s, "latest").Delete([]byte("998"), 1))
				commit(t, s, Progress{}, nil)
			}
			done, err := s.Warm(n)
			must(t, err)
			if done {
				break
			}
		}
		wantValue(t, handle(t, s, "counts"), "7", "counts")
		wantValue(t, handle(t, s, "latest"), "999", "new")
		wantAbsent(t, handle(t, s, "latest"), "998")
		return s, turns
	}
	s, turns := warm(o, 150)
	if turns < 13 || turns > 16 {
		t.Errorf("%d turns of 150 for 2000 entries", turns)
	}
	for number := range uint32(2) {
		if !s.table.Complete(number) {
			t.Errorf("store %d is not complete", number)
		}
	}
	must(t, s.Restore("counts", []RestoreRecord{record("8", "restored", 1)}, 1))
	wantValue(t, handle(t, s, "counts"), "8", "restored")
	if s.table.Complete(0) {
		t.Error("complete after a restore that did not pass the cache")
	}
	must(t, s.Complete(Progress{}, nil))
	must(t, s.Close())

	o.CacheBytes = 16 << 10
	for _, n := range []int{150, 100_000} {
		s, _ := warm(o, n)
		if s.table.Complete(0) || s.table.Complete(1) {
			t.Errorf("1000 entries are complete in a cache of 16 KiB (%d a turn)", n)
		}
		must(t, s.Close())
	}
}

func TestPrefetchNeedsNoGets(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	kv := handle(t, s, "counts")
	for i := range 500 {
		must(t, kv.Put(fmt.Append(nil, 2*i), fmt.Append(nil, i), 1))
	}
	commit(t, s, Progress{}, nil)
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), countsSpec)
	kv = handle(t, s, "counts")
	must(t, kv.Put([]byte("4"), []byte("mine"), 1))
	var keys [][]byte
	for i := range 200 {
		keys = append(keys, fmt.Append(nil, (i*37)%100))
	}
	must(t, kv.Prefetch(keys))
	for _, k := range keys {
		if !s.table.Knows(0, k) {
			t.Errorf("%s is not in the cache", k)
		}
	}
	wantValue(t, kv, "4", "mine")
	wantValue(t, kv, "6", "3")
	wantAbsent(t, kv, "7")
}

func TestCompleteBeginsOnlyAtEmptyStores(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	complete := func(counts, latest bool) {
		t.Helper()
		if s.table.Complete(0) != counts || s.table.Complete(1) != latest {
			t.Errorf("complete: %v, %v; want %v, %v", s.table.Complete(0), s.table.Complete(1), counts, latest)
		}
	}
	complete(true, true)
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{}, nil)
	complete(true, true)
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("w"), 1))
	s.Drop()
	complete(false, true)
	must(t, s.Close())

	s = openStore(t, "t", memOptions(fs), countsSpec, latestSpec)
	complete(false, true)
	must(t, s.Clear("counts"))
	complete(true, true)
	must(t, s.Restore("latest", nil, 5))
	complete(true, false)
}

// A load into the cache does not bring back what was there before a commit, when the cache
// gives up what that commit wrote while the load goes on.
func TestWarmAfterTheCacheGaveUpANewerValue(t *testing.T) {
	value := bytes.Repeat([]byte("v"), 200)
	for early := range 60 {
		o := memOptions(vfs.NewMem())
		o.CacheBytes = -1
		s := openStore(t, "t", o, countsSpec)
		kv := handle(t, s, "counts")
		for i := range 100 {
			must(t, kv.Put(fmt.Appendf(nil, "f%03d", i), value, 0))
		}
		must(t, kv.Put([]byte("k"), []byte("old"), 0))
		commit(t, s, Progress{}, nil)
		must(t, s.Close())

		s = openStore(t, "t", o, countsSpec)
		kv = handle(t, s, "counts")
		_, err := s.Warm(1 + early)
		must(t, err)
		must(t, kv.Put([]byte("k"), []byte("new"), 0))
		commit(t, s, Progress{}, nil)
		for done := false; !done; {
			done, err = s.Warm(1000)
			must(t, err)
		}
		if v, _, ok, err := kv.Get([]byte("k")); err != nil || !ok || string(v) != "new" {
			t.Errorf("written after %d rows were loaded: %q, %t, %v", early, v, ok, err)
		}
		must(t, s.Close())
	}
}
