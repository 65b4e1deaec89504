package pebbledb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"
)

// A test that leaves goroutines of Pebble's behind by design runs in a process of its own: this binary again, with this set.
const childEnv = "TIDEMARK_PEBBLEDB_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(m.Run())
	}
	// Parked goroutines stay, by design; so do those of the databases they belong to.
	const pkg = "github.com/cockroachdb/pebble/v2"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/tidemark-streams/tidemark/statestore/internal/pebbledb.(*logger).Fatalf"),
		goleak.IgnoreAnyFunction(pkg+"/record.(*LogWriter).flushLoop"),
		goleak.IgnoreAnyFunction(pkg+".(*cleanupManager).mainLoop"),
		goleak.IgnoreAnyFunction(pkg+"/internal/genericcache.(*shard[...]).releaseLoop"))
}

// inChild tells whether this is the child, and runs it where it is not.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

var errFailed = errors.New("failed")

func open(t *testing.T) (*DB, *Resources) {
	t.Helper()
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1, MemTableBytes: 1 << 20})
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

// toCreate makes a database on a file system.
func toCreate(fs vfs.FS) Options {
	r := NewResources(ResourceOptions{BlockCacheBytes: 1 << 20, OpenFiles: 10, Compactions: 1, Syncs: 1})
	return Options{FS: fs, Resources: r, Log: slog.New(slog.DiscardHandler), MemTableSize: 256 << 10, Create: true,
		WrapFailure: func(err error) error { return err }, CloseTimeout: time.Second}
}

// An Open that fails at its last step leaves no compaction behind: it would go on with caches
// that are given back.
func TestFailedOpenStartsNoCompaction(t *testing.T) {
	mem := vfs.NewMem()
	o := toCreate(mem)
	r := o.Resources
	d, err := Open("t", o)
	if err != nil {
		t.Fatal(err)
	}
	r.limit.mu.Lock()
	r.limit.running++ // no slot for d: its tables stay in the upper level
	r.limit.mu.Unlock()
	for i := range byte(8) {
		err := d.Write("fill", func(db *pebble.DB) error {
			return errors.Join(db.Set([]byte{'a'}, []byte{i}, nil), db.Set([]byte{'z'}, []byte{i}, nil), db.Flush())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r.limit.mu.Lock()
	r.limit.running--
	r.limit.mu.Unlock()

	reading := make(chan struct{})
	defer close(reading)
	o.Create = false
	o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.Contains(op.Path, "dbtmp") {
			return syscall.ENOSPC
		}
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst") {
			<-reading // a compaction that has begun does not end
		}
		return nil
	}))
	if _, err := Open("t", o); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("open: %v; want the failure", err)
	}
	r.limit.mu.Lock()
	running, refused := r.limit.running, 0
	for _, s := range r.limit.refused {
		if !s.gone {
			refused++
		}
	}
	r.limit.mu.Unlock()
	if running != 0 || refused != 0 {
		t.Errorf("after an open that failed %d compactions run, and %d databases wait for one", running, refused)
	}
	o.FS = mem
	if d, err = Open("t", o); err != nil { // one that does not fail gets its compaction
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for done := false; !done; {
		if err := d.Read("metrics", func(db *pebble.DB) error { done = db.Metrics().Compact.Count > 0; return nil }); err != nil || time.Now().After(deadline) {
			t.Fatalf("no compaction after open: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r.Close()
}
