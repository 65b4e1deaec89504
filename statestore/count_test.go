package statestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// about wants a count that is wrong by no more than half.
func about(t *testing.T, what string, n, want int64) {
	t.Helper()
	if n < want/2 || n > want*2 {
		t.Errorf("%s: count %d; want about %d", what, n, want)
	}
}

func TestApproximateCount(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), countsSpec)
	kv := handle(t, s, "counts")
	want := func(low, high int64) {
		t.Helper()
		if n, err := kv.ApproximateCount(); err != nil || n < low || n > high {
			t.Errorf("count %d, %v; want %d to %d", n, err, low, high)
		}
	}
	want(0, 0)
	for i := range 500 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%06d", i), []byte("some value"), 1))
	}
	commit(t, s, Progress{}, nil)
	must(t, kv.Delete([]byte("key-000007"), 1))
	want(499, 499)
	for i := range 40_000 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%06d", i), fmt.Appendf(nil, "some value %d", i), 1))
	}
	want(40_000, 40_000) // nothing of it is in files
	commit(t, s, Progress{}, nil)
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), countsSpec)
	kv = handle(t, s, "counts")
	want(30_000, 50_000)
}

// TestCountWhereverTheRowsAre: the first rows are in tables, and many more behind them are nowhere but in
// the overlay, in a sealed interval, in memtables, or in the log.
func TestCountWhereverTheRowsAre(t *testing.T) {
	o := Options{Logger: quiet()}
	dir := filepath.Join(t.TempDir(), "0_0")
	s := openStore(t, dir, o, countsSpec)
	put := func(prefix string, from, to, size int) {
		t.Helper()
		kv := handle(t, s, "counts")
		for i := from; i < to; i++ {
			must(t, kv.Put(fmt.Appendf(nil, "%s%08d", prefix, i), make([]byte, size), 1))
		}
	}
	count := func(what string, want int64) {
		t.Helper()
		n, err := handle(t, s, "counts").ApproximateCount()
		must(t, err)
		about(t, what, n, want)
	}
	put("a", 0, 11_000, 8)
	commit(t, s, Progress{}, nil)
	must(t, s.Close())
	s = openStore(t, dir, o, countsSpec)
	count("in tables", 11_000)
	put("b", 0, 60_000, 8)
	count("in the overlay", 71_000)
	x, err := s.Seal(Progress{})
	must(t, err)
	count("sealed", 71_000)
	must(t, s.Commit(x, nil))
	s.Release(x)
	count("in the memtable", 71_000)
	must(t, s.Sync())
	copied := filepath.Join(t.TempDir(), "0_0")
	must(t, SnapshotDir(dir, copied, ReadOptions{Logger: quiet()})) // with a log to be replayed
	size, err := readOnly(t, copied, ReadOptions{}).Size("counts")
	must(t, err)
	about(t, "in the log", size.Rows, 71_000)

	must(t, s.Close())
	s = openStore(t, dir, o, countsSpec)
	put("c", 0, 12_000, 1000) // rows of another size behind the first
	commit(t, s, Progress{}, nil)
	must(t, s.Close())
	s = openStore(t, dir, o, countsSpec)
	count("with large values behind small ones", 83_000)
	for i := range 20 { // the same rows again and again
		put("a", 0, 11_000, 8+i)
		commit(t, s, Progress{}, nil)
	}
	count("written again", 83_000)
	must(t, handle(t, s, "counts").DeleteRange([]byte("b"), nil, 1))
	count("a range deleted in the overlay", 11_000)
	commit(t, s, Progress{}, nil)
	count("a range deleted in the memtable", 11_000)
	must(t, s.Close())
	s = openStore(t, dir, o, countsSpec)
	count("a range deleted in a table", 11_000)
	size, err = func() (StoreSize, error) {
		must(t, s.Close())
		v := readOnly(t, dir, ReadOptions{})
		defer v.Close()
		return v.Size("counts")
	}()
	must(t, err)
	about(t, "a view of it", size.Rows, 11_000)
}

// TestCountIsEstimated: what is settled is not counted one by one.
func TestCountIsEstimated(t *testing.T) {
	o := Options{Logger: quiet(), FS: vfs.NewMem()}
	s := openStore(t, "t", o, countsSpec, latestSpec)
	must(t, s.Clear("counts"))
	must(t, s.LoadSorted("counts", func(yield func(Row, error) bool) {
		for i := range 200_000 {
			if !yield(Row{fmt.Appendf(nil, "key-%08d", i), []byte("value")}, nil) {
				return
			}
		}
	}))
	must(t, s.Complete(Progress{}, nil))
	must(t, s.Close())
	s = openStore(t, "t", o, countsSpec, latestSpec)
	settled, loose, err := handle(t, s, "counts").estimate()
	must(t, err)
	about(t, "settled and others", settled+loose, 200_000)
	must(t, handle(t, s, "counts").DeleteRange([]byte("x"), []byte("y"), 1)) // nothing is in it
	n, err := handle(t, s, "counts").ApproximateCount()
	must(t, err)
	if n < countAtMost || n > 400_000 {
		t.Errorf("behind the deletion of an empty range: count %d", n)
	}
	must(t, s.Close())
	size, err := readOnly(t, "t", ReadOptions{FS: o.FS}).Size("counts")
	must(t, err)
	about(t, "a view", size.Rows, 200_000)
	if size.Exact || size.Bytes == 0 {
		t.Errorf("%+v; want an estimate", size)
	}
}
