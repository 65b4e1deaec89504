package main

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// BenchmarkProgress commits 1,000 records with positions, stream time and changelog offset,
// against the same commits without them: at most 1.02.
func BenchmarkProgress(b *testing.B) {
	keys := keysOf(1000)
	without, plain := countStore(b, statestore.Options{SyncInterval: time.Hour})
	with, kv := countStore(b, statestore.Options{SyncInterval: time.Hour})
	duel(b, 5, 100*len(keys), func(int) {
		for range 100 {
			for _, k := range keys {
				must(b, plain.Put(k, k[:8], 1))
			}
			x, err := without.Seal(statestore.Progress{StreamTime: statestore.NoStreamTime})
			must(b, err)
			must(b, without.Commit(x, nil))
			without.Release(x)
		}
	}, func(int) {
		for range 100 {
			put(b, with, kv, keys)
		}
	})
}

const minute = int64(time.Minute / time.Millisecond)

// BenchmarkWindowFetch fetches the windows of one key from a store with 100 keys, and from
// one with 100,000 keys, or with some expired hours: about 1.
func BenchmarkWindowFetch(b *testing.B) {
	spec := statestore.Spec{Name: "windows", Kind: statestore.KindWindow, WindowSize: time.Minute, Retention: 10 * time.Minute}
	fill := func(b *testing.B, n, hours int) (*statestore.Window, [][]byte) {
		s := taskStore(b, statestore.Options{}, spec)
		w, err := s.Window("windows")
		must(b, err)
		keys := keysOf(n)
		for start := int64(0); start < int64(1+hours)*60*minute; start += 6 * minute {
			for i, k := range keys {
				if i%10 == int(start/minute)%10 || i < 100 {
					must(b, w.Put(k, k[:8], start, start))
				}
			}
			commit(b, s, "windows")
		}
		return w, keys[:100]
	}
	fetch := func(w *statestore.Window, keys [][]byte) func(int) {
		return func(int) {
			for i := range 1000 {
				n := 0
				for e, err := range w.Fetch(keys[i%100], w.StreamTime()-8*minute, w.StreamTime()) {
					must(b, err)
					n += len(e.Value)
				}
				if n == 0 {
					b.Fatal("nothing was fetched")
				}
			}
		}
	}
	for _, c := range []struct {
		name        string
		keys, hours int
	}{{"other keys", 100_000, 0}, {"expired hours", 100, 100}, {"both", 100_000, 1}} {
		b.Run(c.name, func(b *testing.B) {
			duel(b, 20, 1000, fetch(fill(b, 100, 0)), fetch(fill(b, c.keys, c.hours)))
		})
	}
}

// BenchmarkWindowUpdate fetches and puts one window for each record, with 100 or 100,000
// keys written since the last commit: what it costs more with the second is the memory's
// doing, not the number's.
func BenchmarkWindowUpdate(b *testing.B) {
	spec := statestore.Spec{Name: "windows", Kind: statestore.KindWindow, WindowSize: time.Minute, Retention: time.Hour}
	update := func(n int) func(int) {
		s := taskStore(b, statestore.Options{}, spec)
		w, err := s.Window("windows")
		must(b, err)
		keys := keysOf(n)
		for range 2 {
			for _, k := range keys {
				for _, err := range w.Fetch(k, 0, minute) {
					must(b, err)
				}
				must(b, w.Put(k, k[:8], minute, minute))
			}
		}
		value := make([]byte, 8)
		return func(round int) {
			for i := range 1000 {
				k := keys[(round*1000+i)%n]
				for e, err := range w.Fetch(k, 0, minute) {
					must(b, err)
					copy(value, e.Value)
				}
				binary.BigEndian.PutUint64(value, binary.BigEndian.Uint64(value)+1)
				must(b, w.Put(k, value, minute, minute))
			}
		}
	}
	duel(b, 100, 1000, update(100), update(100_000))
}
