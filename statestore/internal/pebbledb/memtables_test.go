package pebbledb

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

func openWithBudget(t *testing.T, budget int64, n int) ([]*DB, *Resources) {
	t.Helper()
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1, MemTableBytes: budget})
	var dbs []*DB
	for i := range n {
		d, err := Open(fmt.Sprint("t", i), Options{FS: vfs.NewMem(), Resources: r, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), MemTableSize: 16 << 20,
			Create: true, WrapFailure: func(err error) error { return err }, CloseTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		dbs = append(dbs, d)
	}
	t.Cleanup(func() {
		for _, d := range dbs {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := r.MemTableBytes(); n != 0 {
			t.Errorf("%d bytes are counted with all databases closed", n)
		}
		r.Close()
	})
	return dbs, r
}

// write applies n batches of 64 KiB.
func write(t *testing.T, d *DB, n int) {
	t.Helper()
	value := make([]byte, 64<<10)
	for range n {
		err := d.Apply("test", len(value), false, func(b engine.Batch) error {
			engine.Set(b, nil, fmt.Append(nil, rand.Uint64()), nil, value)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func flushes(t *testing.T, d *DB) (n int64) {
	t.Helper()
	if err := d.Read("metrics", func(db *pebble.DB) error { n = db.Metrics().Flush.Count; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestMemTablesKeepToTheirBudget(t *testing.T) {
	const budget = 4 << 20
	dbs, r := openWithBudget(t, budget, 3)
	for range 8 { // 12 MiB in all
		for _, d := range dbs {
			write(t, d, 8)
		}
	}
	// A flush that was under way at the last write leaves that write to the sync, which every
	// database gets after its last one.
	eventually(t, "within the budget", func() bool {
		for _, d := range dbs {
			if err := d.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		return r.MemTableBytes() <= budget
	})
	flushed := int64(0)
	for _, d := range dbs {
		flushed += flushes(t, d)
	}
	if flushed < 2 { // of 12 MiB at least 8 had to go
		t.Errorf("%d flushes", flushed)
	}

	dbs, r = openWithBudget(t, 1<<30, 3)
	for _, d := range dbs {
		write(t, d, 64)
		if n := flushes(t, d); n != 0 {
			t.Errorf("%d flushes with room for all", n)
		}
	}
	if n := r.MemTableBytes(); n < 12<<20 || n > 14<<20 {
		t.Errorf("%d bytes are counted of 12 MiB", n)
	}
}

// A database that is no longer written to gives its memory back at its last sync, if others
// need it.
func TestIdleMemTableIsFlushed(t *testing.T) {
	dbs, r := openWithBudget(t, 4<<20, 2)
	idle, busy := dbs[0], dbs[1]
	write(t, idle, 48) // 3 MiB
	if err := idle.Sync(); err != nil {
		t.Fatal(err)
	}
	if flushes(t, idle) != 0 {
		t.Fatal("it was flushed within the budget")
	}
	write(t, busy, 20)
	if n := flushes(t, busy); n != 0 {
		t.Fatalf("the one that holds less than its part was flushed %d times", n)
	}
	if err := idle.Sync(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "flushed", func() bool { return flushes(t, idle) > 0 && r.MemTableBytes() < 2<<20 })
}
