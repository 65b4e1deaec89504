package pebbledb

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Parked goroutines stay, by design; so do those of the databases they belong to.
	const pkg = "github.com/cockroachdb/pebble/v2"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/tidemark-streams/tidemark/statestore/internal/pebbledb.(*logger).Fatalf"),
		goleak.IgnoreAnyFunction(pkg+"/record.(*LogWriter).flushLoop"),
		goleak.IgnoreAnyFunction(pkg+".(*cleanupManager).mainLoop"),
		goleak.IgnoreAnyFunction(pkg+"/internal/genericcache.(*shard[...]).releaseLoop"))
}

var errFailed = errors.New("failed")

func open(t *testing.T) (*DB, *Resources) {
	t.Helper()
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1})
	d, err := Open("t", Options{FS: vfs.NewMem(), Resources: r, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), MemTableSize: 256 << 10,
		Create: true, WrapFailure: func(err error) error { return fmt.Errorf("%w: %w", errFailed, err) }, CloseTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

// wantFailed checks that d answers every call with one error and never enters Pebble.
func wantFailed(t *testing.T, d *DB, err error, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !errors.Is(err, errFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	enter := func(*pebble.DB) error { t.Error("Pebble was entered after the failure"); return nil }
	for _, again := range []error{d.Read("read", enter), d.Write("write", enter), d.Err()} {
		if again == nil || again.Error() != err.Error() {
			t.Errorf("after %v: %v", err, again)
		}
	}
	select {
	case <-d.Failed():
	default:
		t.Error("Failed is not closed")
	}
}

func wantAbandoned(t *testing.T, d *DB, want int64) {
	t.Helper()
	before := Abandoned()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if got := Abandoned() - before; got != want {
		t.Errorf("%d databases were abandoned; want %d", got, want)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestErrorInRead(t *testing.T) {
	d, r := open(t)
	err := d.Read("get", func(*pebble.DB) error { return syscall.EIO })
	wantFailed(t, d, err, "get: input/output error")
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("%v hides its cause", err)
	}
	wantAbandoned(t, d, 0)
	r.Close()
}

func TestPanicInWrite(t *testing.T) {
	d, r := open(t)
	err := d.Write("commit", func(*pebble.DB) error { panic("boom") })
	wantFailed(t, d, err, "commit: pebble panicked: boom")
	wantAbandoned(t, d, 1)
	r.Close()
}

func TestFatalUnderReader(t *testing.T) {
	d, r := open(t)
	err := d.Read("get", func(*pebble.DB) error {
		d.fatalLogger().Fatalf("invariant %d", 7)
		return nil
	})
	wantFailed(t, d, err, "pebble cannot go on: invariant 7")
	wantAbandoned(t, d, 1)
	r.Close()
}

func TestFatalUnderWriterDoesNotHang(t *testing.T) {
	d, r := open(t)
	err := d.Write("commit", func(*pebble.DB) error {
		d.fatalLogger().Fatalf("fatal commit error: %v", syscall.ENOSPC)
		return nil
	})
	wantFailed(t, d, err, "no space left on device")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v hides its cause", err)
	}
	wantAbandoned(t, d, 1)
	r.Close()
}

// A call that is under way when a background goroutine meets the end must come back too.
func TestFatalInTheBackgroundFreesWriters(t *testing.T) {
	d, r := open(t)
	blocked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() {
		<-blocked
		d.fatalLogger().Fatalf("MANIFEST flush failed: %v", pebble.ErrCorruption)
	}()
	err := d.Write("flush", func(*pebble.DB) error {
		close(blocked)
		<-release // as if the lock were held for ever
		return nil
	})
	wantFailed(t, d, err, "MANIFEST flush failed")
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v; want ErrCorrupt", err)
	}
	wantAbandoned(t, d, 1)
	r.Close()
}

func TestFirstFailureStays(t *testing.T) {
	d, r := open(t)
	d.fail(errors.New("first"), broken)
	d.fail(errors.New("second"), broken)
	wantFailed(t, d, d.Err(), "first")
	wantAbandoned(t, d, 0)
	r.Close()
}
