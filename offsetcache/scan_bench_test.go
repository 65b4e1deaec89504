package offsetcache

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
)

// BenchmarkScan is of 200 directories: closed cleanly or as after kill -9, in the page cache or out of it, in parallel, one after
// another, and one after another for writing, as is done where there is no scan.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			original := filepath.Join(b.TempDir(), "t")
			makeStore(b, original, 42, size)
			dirs := copies(b, original, 200)
			b.Run("clean", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{}, nil) })
			b.Run("clean/cold", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{}, evict) })
			b.Run("clean/sequential", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{Parallel: 1}, nil) })
			b.Run("clean/sequential-rw", func(b *testing.B) { benchmarkOpen(b, dirs) })
		})
	}
	b.Run("killed", func(b *testing.B) {
		original := filepath.Join(b.TempDir(), "t")
		makeKilled(b, original)
		dirs := copies(b, original, 200)
		b.Run("dirty", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{}, nil) })
		b.Run("dirty/cold", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{}, evict) })
		b.Run("dirty/sequential", func(b *testing.B) { benchmarkScan(b, dirs, ScanOptions{Parallel: 1}, nil) })
	})
}

// benchmarkScan scans again and again; prepare, if not nil, comes before each time and does not count.
func benchmarkScan(b *testing.B, dirs []Directory, o ScanOptions, prepare func(testing.TB, string)) {
	o.Logger = quiet
	var replayed int64
	for b.Loop() {
		if prepare != nil {
			b.StopTimer()
			for _, d := range dirs {
				prepare(b, d.Path)
			}
			b.StartTimer()
		}
		scan, err := New().Scan(b.Context(), dirs, o)
		if err != nil || scan.Opened != len(dirs) {
			b.Fatal(err, scan)
		}
		replayed = scan.ReplayedBytes
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(dirs)), "us/dir")
	b.ReportMetric(float64(replayed)/float64(len(dirs)), "replayed-B/dir")
}

func benchmarkOpen(b *testing.B, dirs []Directory) {
	for b.Loop() {
		for _, d := range dirs {
			s, err := statestore.Open(d.Path, statestore.Options{Logger: quiet, CacheBytes: -1})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(dirs)), "us/dir")
}
