package table

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The ways of bringing writes into order that docs/benchmarks.md compares.
var orders = []struct {
	name       string
	indexAfter int
}{
	{"collect", 1 << 60},     // each scan collects and sorts
	{"adaptive", indexAfter}, // what the table does
	{"always", -1},           // a list is kept from the first write on
}

// benchTable is a table of which the store 0 was scanned in every interval so far.
func benchTable(budget, indexAfter int) *Table {
	tb := New(budget)
	tb.indexAfter = indexAfter
	if indexAfter < 0 {
		tb.buildIndex(0, tb.orderOf(0))
	}
	return tb
}

func benchKeys(n int) [][]byte {
	keys := make([][]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i, p := range r.Perm(n) {
		keys[i] = fmt.Appendf(nil, "key-%010d", p)
	}
	return keys
}

func endInterval(tb *Table, into *Sealed) *Sealed {
	into = tb.Seal(into)
	tb.Applied()
	return into
}

// BenchmarkUpdate gets and puts, and seals every 10,000 updates, and never scans.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		keys := benchKeys(n)
		for _, o := range orders {
			b.Run(fmt.Sprintf("keys=%d/%s", n, o.name), func(b *testing.B) {
				tb := benchTable(512<<20, o.indexAfter)
				tb.SetComplete(0, true)
				var s *Sealed
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					k := keys[i%n]
					tb.Get(0, k)
					_ = tb.Put(0, k, k[:8], 1)
					if i%10_000 == 9_999 {
						s = endInterval(tb, s)
					}
				}
			})
		}
	}
}

// BenchmarkScanAll scans 10,000 writes after each 1,000 of them.
func BenchmarkScanAll(b *testing.B) {
	keys := benchKeys(10_000)
	for _, o := range orders {
		b.Run(o.name, func(b *testing.B) {
			tb := benchTable(512<<20, o.indexAfter)
			var s *Sealed
			var c Cursor
			b.ReportAllocs()
			for b.Loop() {
				for i, k := range keys {
					_ = tb.Put(0, k, k[:8], 1)
					if i%1000 == 999 {
						for tb.Open(&c, 0, nil, nil, false); c.Valid(); c.Next() {
						}
						c.Close()
					}
				}
				s = endInterval(tb, s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/put")
		})
	}
}

// BenchmarkScanOnce scans once in an interval of 10,000 writes.
func BenchmarkScanOnce(b *testing.B) {
	keys := benchKeys(10_000)
	for _, o := range orders {
		b.Run(o.name, func(b *testing.B) {
			tb := benchTable(512<<20, o.indexAfter)
			var s *Sealed
			var c Cursor
			b.ReportAllocs()
			for b.Loop() {
				for _, k := range keys {
					_ = tb.Put(0, k, k[:8], 1)
				}
				for tb.Open(&c, 0, nil, nil, false); c.Valid(); c.Next() {
				}
				c.Close()
				s = endInterval(tb, s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/put")
		})
	}
}

// windowKey is segment, key, start and sequence, as in the database.
func windowKey(b, key []byte, start uint64) []byte {
	b = binary.BigEndian.AppendUint64(b[:0], start/60_000)
	b = append(b, key...)
	b = binary.BigEndian.AppendUint64(b, start)
	return append(b, 0, 0, 0, 0)
}

// BenchmarkWindows does for each record a short scan and a put, with 1,000 or 100,000 keys
// written in an interval.
func BenchmarkWindows(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		keys := benchKeys(n)
		for _, o := range orders {
			if n > 1000 && o.indexAfter > 1<<30 {
				continue // see keys=1000; it grows with the number
			}
			b.Run(fmt.Sprintf("keys=%d/%s", n, o.name), func(b *testing.B) {
				tb := benchTable(512<<20, o.indexAfter)
				var s *Sealed
				var c Cursor
				var from, to []byte
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					k := keys[i%n]
					start := 1_000_000_000 + uint64(i/n)*1000
					from, to = windowKey(from, k, start-1000), windowKey(to, k, start+1)
					for tb.Open(&c, 0, from, to, false); c.Valid(); c.Next() {
					}
					c.Close()
					_ = tb.Put(0, windowKey(from, k, start), k[:8], 1)
					if i%n == n-1 {
						s = endInterval(tb, s)
					}
				}
			})
		}
	}
}

// BenchmarkSort sorts the 10,000 writes of an interval.
func BenchmarkSort(b *testing.B) {
	keys := benchKeys(10_000)
	var into *Sealed
	for b.Loop() {
		b.StopTimer()
		tb := New(64 << 20)
		for _, k := range keys {
			_ = tb.Put(0, k, k[:8], 1)
		}
		into = tb.Seal(into)
		b.StartTimer()
		into.Sort()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
}
