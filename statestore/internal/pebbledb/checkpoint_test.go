package pebbledb

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A power loss may leave tables and no log. What is opened then has flushed nothing before its
// first checkpoint, which must be whole all the same.
func TestCheckpointWithoutALog(t *testing.T) {
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1, MemTableBytes: 1 << 20})
	defer r.Close()
	fs := vfs.NewMem()
	open := func(dir string, create bool) *DB {
		d, err := Open(dir, Options{FS: fs, Resources: r, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), MemTableSize: 256 << 10,
			Create: create, WrapFailure: func(err error) error { return fmt.Errorf("%w: %w", errFailed, err) }, CloseTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d := open("t", true)
	must(d.Write("set", func(db *pebble.DB) error { return db.Set([]byte("k"), []byte("v"), nil) }))
	must(d.Flush())
	must(d.Close())
	names, err := fs.List("t")
	must(err)
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			must(fs.Remove(fs.PathJoin("t", name)))
		}
	}
	d = open("t", false)
	must(d.Checkpoint("copy"))
	must(d.Close())
	d = open("copy", false)
	if v, ok, err := d.Get("get", []byte("k"), nil); err != nil || !ok || string(v) != "v" {
		t.Errorf("the checkpoint holds %q, %v, %v", v, ok, err)
	}
	must(d.Close())
}
