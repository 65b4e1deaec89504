package main

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Each of these benchmarks does the same work by hand on Pebble and with a task store, in
// turn, and reports the CPU time of both and their ratio. It is the time of the whole process: a commit is
// applied on a goroutine of its own, and what is written is flushed and compacted in the background. So each side's
// turn ends when the process has become quiet again. Both have memtables of one size, which they fill
// many times in a turn, or none of them is filled.

const (
	entries  = 1_000_000
	interval = 10_000
)

// duel runs both sides in turns of some rounds each, of n operations.
func duel(b *testing.B, rounds, n int, hand, ours func(round int)) {
	b.Helper()
	var cpu [2]time.Duration
	sides := [2]func(int){hand, ours}
	for turn := 0; b.Loop(); turn++ {
		for i := range sides {
			side := (turn + i) % 2 // neither is always the first
			runtime.GC()
			quiet()
			before := report.CPU()
			for round := range rounds {
				sides[side](turn*rounds + round)
			}
			quiet()
			cpu[side] += report.CPU() - before
		}
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N*rounds*n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(per(cpu[0]), "hand-ns")
	b.ReportMetric(per(cpu[1]), "ours-ns")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "ours/hand")
}

// quiet waits until flushes and compactions have come to their end.
func quiet() {
	const look, idle = 10 * time.Millisecond, time.Millisecond
	for still := 0; still < 3; {
		before := report.CPU()
		<-time.After(look)
		if still++; report.CPU()-before > idle {
			still = 0
		}
	}
}

// must is called for every key: b.Helper would cost more than most of them.
func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// keysOf gives n 14-byte keys in a mixed order.
func keysOf(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%010d", i*7919%n)
	}
	return keys
}

func handDB(b *testing.B, memTable int) *pebble.DB {
	b.Helper()
	cache := pebble.NewCache(64 << 20)
	db, err := pebble.Open(b.TempDir(), &pebble.Options{Cache: cache, FS: vfs.Default, FormatMajorVersion: pebble.FormatNewest, MemTableSize: uint64(memTable), L0CompactionThreshold: 4, Logger: silent{}})
	must(b, err)
	b.Cleanup(func() {
		must(b, db.Close())
		cache.Unref()
	})
	return db
}

func taskStore(b *testing.B, o statestore.Options, specs ...statestore.Spec) *statestore.TaskStore {
	b.Helper()
	r, err := statestore.NewResources(statestore.ResourceOptions{})
	must(b, err)
	o.Resources, o.Logger = r, slog.New(slog.DiscardHandler)
	s, err := statestore.Open(b.TempDir()+"/0_0", o)
	must(b, err)
	b.Cleanup(func() {
		must(b, s.Close())
		must(b, r.Close())
	})
	must(b, s.Register(specs...))
	return s
}

func countStore(b *testing.B, o statestore.Options) (*statestore.TaskStore, *statestore.KeyValue) {
	b.Helper()
	s := taskStore(b, o, statestore.Spec{Name: "counts", Kind: statestore.KindKeyValue})
	kv, err := s.KeyValue("counts")
	must(b, err)
	return s, kv
}

var commits int64

func commit(b *testing.B, s *statestore.TaskStore, store string) {
	b.Helper()
	commits++
	x, err := s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: commits}, StreamTime: commits,
		Positions: []statestore.Position{{Topic: "in", Next: commits}}})
	must(b, err)
	must(b, s.Commit(x, map[string]statestore.Offset{store: statestore.At(commits)}))
	s.Release(x)
}

// handPut writes keys in one batch with an offset.
func handPut(b *testing.B, db *pebble.DB, keys [][]byte, offset int) {
	batch := db.NewBatch()
	for _, k := range keys {
		must(b, batch.Set(k, k[:8], nil))
	}
	must(b, batch.Set(offsetKey, binary.BigEndian.AppendUint64(nil, uint64(offset)), nil))
	must(b, batch.Commit(pebble.NoSync))
	must(b, batch.Close())
}

func put(b *testing.B, s *statestore.TaskStore, kv *statestore.KeyValue, keys [][]byte) {
	for _, k := range keys {
		must(b, kv.Put(k, k[:8], 1))
	}
	commit(b, s, kv.Name())
}

// BenchmarkPut writes 10,000 keys and commits them: at most 1.15.
func BenchmarkPut(b *testing.B) {
	for _, n := range []int{interval, entries} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := keysOf(n)
			db := handDB(b, 4<<20)
			s, kv := countStore(b, statestore.Options{SyncInterval: time.Hour}) // by hand nothing is synced either
			part := func(round int) [][]byte {
				at := round * interval % n
				return keys[at : at+interval]
			}
			for round := range n / interval { // all keys are there, and memory has its size
				handPut(b, db, part(round), round)
				put(b, s, kv, part(round))
			}
			duel(b, 50, interval, func(round int) { handPut(b, db, part(round), round) }, func(round int) { put(b, s, kv, part(round)) })
		})
	}
}

// BenchmarkGet reads keys that only the database has (at most 1.10) and keys that the
// store has in memory (at most 0.33).
func BenchmarkGet(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache int
	}{
		{"miss", -1},
		{"hit", 256 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			keys := keysOf(entries)
			db := handDB(b, 4<<20)
			s, kv := countStore(b, statestore.Options{CacheBytes: c.cache})
			for at := 0; at < entries; at += interval {
				handPut(b, db, keys[at:at+interval], at)
				put(b, s, kv, keys[at:at+interval])
			}
			var value []byte
			part := func(round int) [][]byte {
				at := round * interval % entries
				return keys[at : at+interval]
			}
			duel(b, 20, interval, func(round int) {
				for _, k := range part(round) {
					v, closer, err := db.Get(k)
					must(b, err)
					value = append(value[:0], v...)
					must(b, closer.Close())
				}
			}, func(round int) {
				for _, k := range part(round) {
					if _, _, ok, err := kv.Get(k); err != nil || !ok {
						b.Fatal(ok, err)
					}
				}
			})
		})
	}
}

// BenchmarkScan goes over 1,000,000 entries with nothing uncommitted: at most 1.2.
func BenchmarkScan(b *testing.B) {
	keys := keysOf(entries)
	db := handDB(b, 4<<20)
	s, kv := countStore(b, statestore.Options{})
	for at := 0; at < entries; at += interval {
		handPut(b, db, keys[at:at+interval], at)
		put(b, s, kv, keys[at:at+interval])
	}
	n := 0
	duel(b, 2, entries, func(int) {
		it, err := db.NewIter(&pebble.IterOptions{UpperBound: offsetKey})
		must(b, err)
		for it.First(); it.Valid(); it.Next() {
			v, err := it.ValueAndErr()
			must(b, err)
			n += len(it.Key()) + len(v)
		}
		must(b, it.Close())
	}, func(int) {
		for e, err := range kv.All() {
			must(b, err)
			n += len(e.Key) + len(e.Value)
		}
	})
}
