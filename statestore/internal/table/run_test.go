package table

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// A run gives the last write of each key, once and in the order of the keys, however long they are.
func TestRunGivesTheLast(t *testing.T) {
	rng := testseed.New(t)
	for _, n := range []int{0, 1, 2, touched - 1, touched, touched + 1, 5000} {
		r := NewRun(1 << 16)
		for range 2 { // its memory is used again
			want := map[string]string{}
			for i := range n {
				key := fmt.Sprint("k", rng.IntN(max(1, n/2)))
				if n%2 == 0 {
					key = fmt.Sprintf("key-%08d", rng.IntN(max(1, n/2))) // of one length
				}
				value := fmt.Append(nil, i, string(make([]byte, rng.IntN(3*maxTouch/2)*(rng.IntN(20)/19))))
				if rng.IntN(5) == 0 {
					value = nil
				}
				if err := r.Add([]byte(key), value, int64(i)); err != nil {
					t.Fatal(err)
				}
				want[key] = string(value)
			}
			var keys []string
			for w := range r.Last() {
				key := string(w.Key)
				keys = append(keys, key)
				if v, ok := want[key]; !ok || v != string(w.Value) || (v == "") != (w.Value == nil) {
					t.Fatalf("%d writes: key %s has %q", n, key, w.Value)
				}
			}
			if len(keys) != len(want) || !slices.IsSorted(keys) {
				t.Fatalf("%d writes: %d keys of %d, in order %v", n, len(keys), len(want), slices.IsSorted(keys))
			}
			for range r.Last() {
				break // an early end
			}
			r.Reset(1 << 16)
		}
	}
}

// BenchmarkRun sorts runs of 32 MiB and copies the last of each key.
func BenchmarkRun(b *testing.B) {
	const n, limit = 280_000, 32 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%010d", rng.IntN(1_000_000))
	}
	value, to := make([]byte, 100), make([]byte, 0, 200)
	r := NewRun(limit)
	for b.Loop() {
		for i, k := range keys {
			binary.LittleEndian.PutUint64(value, uint64(i))
			if err := r.Add(k, value, 1); err != nil {
				b.Fatal(err)
			}
		}
		for w := range r.Last() {
			to = append(append(to[:0], w.Key...), w.Value...)
		}
		r.Reset(limit)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
