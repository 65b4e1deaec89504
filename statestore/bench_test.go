package statestore

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func benchKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%010d", (i*7919)%n)
	}
	return keys
}

func benchStore(b testing.TB, o Options) (*TaskStore, *KeyValue) {
	o.Logger = quiet()
	s := openStore(b, filepath.Join(b.TempDir(), "0_0"), o, countsSpec)
	return s, handle(b, s, "counts")
}

func TestGetAndPutDoNotAllocate(t *testing.T) {
	s, kv := benchStore(t, Options{})
	keys := benchKeys(1000)
	value := make([]byte, 8)
	for range 2 { // the second time the list of dirty entries has its size
		for _, k := range keys {
			must(t, kv.Put(k, value, 1))
		}
		commit(t, s, Progress{}, nil)
	}
	i := 0
	if n := testing.AllocsPerRun(900, func() {
		k := keys[i]
		i++
		v, _, ok, err := kv.Get(k)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		copy(value, v)
		if err := kv.Put(k, value, 1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a get and a put of a known key", n)
	}
	if n := testing.AllocsPerRun(900, func() {
		if _, _, ok, err := kv.Get([]byte("not there")); ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a get of an absent key of a complete store", n)
	}
}

// TestCommitWhileOwnerWrites is for the race detector: one interval is read and committed
// while the next is written, read and scanned.
func TestCommitWhileOwnerWrites(t *testing.T) { onEngines(t, testCommitWhileOwnerWrites) }

func testCommitWhileOwnerWrites(t *testing.T, o Options) {
	o.SyncInterval = time.Millisecond
	o.CacheBytes = 64 << 10
	s := openStore(t, "t", o, countsSpec, latestSpec)
	kv := handle(t, s, "counts")
	var wg sync.WaitGroup
	for round := range 20 {
		for i := range 300 {
			must(t, kv.Put(fmt.Append(nil, i), fmt.Append(nil, round), int64(round)))
		}
		x, err := s.Seal(Progress{ID: CommitID{1, int64(round + 1)}})
		must(t, err)
		wg.Go(func() {
			n := 0
			for c := range x.Changes() {
				if string(c.Value) != fmt.Sprint(round) {
					t.Errorf("round %d: change %q", round, c.Value)
				}
				n++
			}
			if n != 300 || x.Len() != 300 {
				t.Errorf("round %d: %d changes", round, n)
			}
			if err := s.Commit(x, map[string]Offset{"counts": At(int64(round))}); err != nil {
				t.Error(err)
			}
		})
		for i := range 300 {
			v, _, ok, err := kv.Get(fmt.Append(nil, i))
			if err != nil || !ok || string(v) != fmt.Sprint(round) {
				t.Fatalf("round %d: get %d = %q, %v, %v", round, i, v, ok, err)
			}
			must(t, kv.Put(fmt.Append(nil, i), []byte("next"), 1))
			if i == 150 {
				if n := len(collect(t, kv.All())); n != 300 {
					t.Fatalf("round %d: scan of %d entries", round, n)
				}
			}
		}
		_ = s.CommittedOffsets()
		_, _ = s.Stores()
		wg.Wait()
		s.Release(x)
	}
}

func BenchmarkGetHit(b *testing.B) {
	s, kv := benchStore(b, Options{})
	keys := benchKeys(10_000)
	for _, k := range keys {
		must(b, kv.Put(k, k[:8], 1))
	}
	commit(b, s, Progress{}, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, ok, err := kv.Get(keys[i%len(keys)]); err != nil || !ok {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, kv := benchStore(b, Options{})
	keys := benchKeys(10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must(b, kv.Put(keys[i%len(keys)], keys[0][:8], 1))
	}
	s.Drop()
}

// BenchmarkCount is the count per key as a processor does it, commits included.
func BenchmarkCount(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for name, cache := range map[string]int{"cached": 256 << 20, "uncached": -1} {
			b.Run(fmt.Sprintf("keys=%d/%s", n, name), func(b *testing.B) {
				s, kv := benchStore(b, Options{CacheBytes: cache})
				keys := benchKeys(n)
				value := make([]byte, 8)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					k := keys[i%n]
					v, _, ok, err := kv.Get(k)
					must(b, err)
					count := uint64(1)
					if ok {
						count += binary.BigEndian.Uint64(v)
					}
					binary.BigEndian.PutUint64(value, count)
					must(b, kv.Put(k, value, 1))
					if i%10_000 == 9_999 {
						commit(b, s, Progress{}, nil)
					}
				}
			})
		}
	}
}

// BenchmarkPrefetch reads 10,000 random keys of 1,000,000 with a cache that holds few.
func BenchmarkPrefetch(b *testing.B) {
	s, kv := benchStore(b, Options{CacheBytes: 4 << 20})
	keys := benchKeys(1_000_000)
	for i, k := range keys {
		must(b, kv.Put(k, k[:8], 1))
		if i%100_000 == 99_999 {
			commit(b, s, Progress{}, nil)
		}
	}
	for _, hint := range []bool{false, true} {
		b.Run(fmt.Sprintf("hint=%v", hint), func(b *testing.B) {
			at := 0
			for b.Loop() {
				poll := keys[at : at+10_000]
				at = (at + 10_000) % len(keys)
				if hint {
					must(b, kv.Prefetch(poll))
				}
				for _, k := range poll {
					if _, _, ok, err := kv.Get(k); err != nil || !ok {
						b.Fatal(ok, err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/key")
		})
	}
}

// BenchmarkSeal and BenchmarkCommit are for 10,000 changed keys.
func BenchmarkSeal(b *testing.B) { benchInterval(b, false) }

func BenchmarkCommit(b *testing.B) { benchInterval(b, true) }

func benchInterval(b *testing.B, timeCommit bool) {
	s, kv := benchStore(b, Options{CacheBytes: 256 << 20})
	keys := benchKeys(10_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for _, k := range keys {
			must(b, kv.Put(k, k, 1))
		}
		if !timeCommit {
			b.StartTimer()
		}
		x, err := s.Seal(Progress{})
		must(b, err)
		if timeCommit {
			b.StartTimer()
		} else {
			b.StopTimer()
		}
		must(b, s.Commit(x, nil))
		if timeCommit {
			b.StopTimer()
		}
		s.Release(x)
		b.StartTimer()
	}
}

func BenchmarkScan(b *testing.B) {
	s, kv := benchStore(b, Options{})
	for i, k := range benchKeys(20_000) {
		must(b, kv.Put(k, k, 1))
		if i == 10_000 {
			commit(b, s, Progress{}, nil)
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, err := range kv.All() {
			must(b, err)
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
}
