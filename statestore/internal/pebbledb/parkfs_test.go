package pebbledb

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log that was closed once, in vain, is closed again by whoever wants to go over to the next:
// that must be an error, also where the file system would panic.
func TestClosedLogIsNotTouched(t *testing.T) {
	fs := &parkFS{FS: vfs.NewCrashableMem(), dir: ".", opened: new(atomic.Bool), report: func(err error, _ severity) { t.Error(err) }}
	f, err := fs.Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.(*parkFile); !ok {
		t.Fatalf("%T is not watched", f)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, werr := f.Write([]byte("x"))
	_, terr := f.SyncTo(1)
	for i, err := range []error{werr, terr, f.Sync(), f.SyncData(), f.Close()} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
