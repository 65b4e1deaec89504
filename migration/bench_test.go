package migration

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// BenchmarkMove moves one store of 256 MiB (TIDEMARK_MOVE_MIB says another size), which does not compress,
// and copies its files (synced) for comparison: the ratio is to be at least one half.
func BenchmarkMove(b *testing.B) {
	size := 256 << 20
	if mib, err := strconv.Atoi(os.Getenv("TIDEMARK_MOVE_MIB")); err == nil {
		size = mib << 20
	}
	original := filepath.Join(b.TempDir(), "store")
	if err := os.MkdirAll(original, 0o700); err != nil {
		b.Fatal(err)
	}
	makeLarge(b, original, size)
	var moving, copying time.Duration
	for b.Loop() {
		dir := b.TempDir()
		task := filepath.Join(dir, "app", "0_0")
		begun := time.Now()
		copySynced(b, original, filepath.Join(task, "stores", "kv"))
		copying += time.Since(begun)
		if err := os.WriteFile(filepath.Join(task, checkpointName), []byte("0\n1\napp-kv-changelog 0 41\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		begun = time.Now()
		r, err := Apply(b.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
		moving += time.Since(begun)
		if err != nil || !r.OK || actions(r)["0_0 kv"] != "at migrate" {
			b.Fatal(err, r)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size))
	b.ReportMetric(float64(size>>20)*float64(b.N)/moving.Seconds(), "MiB/s-moved")
	b.ReportMetric(float64(size>>20)*float64(b.N)/copying.Seconds(), "MiB/s-copied")
	b.ReportMetric(copying.Seconds()/moving.Seconds(), "moved/copied")
}

func makeLarge(b *testing.B, dir string, size int) {
	b.Helper()
	db, err := pebble.Open(dir, &pebble.Options{Logger: nothing{}, MemTableSize: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 400)
	batch := db.NewBatch()
	for i, n := 0, 0; n < size; i++ {
		for j := 0; j < len(value); j += 8 {
			binary.LittleEndian.PutUint64(value[j:], random.Uint64())
		}
		key := fmt.Appendf(nil, "key%012d", i)
		n += len(key) + len(value)
		if err := batch.Set(key, value, nil); err != nil {
			b.Fatal(err)
		}
		if batch.Len() > 4<<20 {
			if err := batch.Commit(pebble.NoSync); err != nil {
				b.Fatal(err)
			}
			batch = db.NewBatch()
		}
	}
	for _, err := range []error{batch.Commit(pebble.Sync), db.Flush(), db.Close()} {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func copySynced(b *testing.B, from, to string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		b.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(to, "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
