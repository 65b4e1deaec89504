package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Of a thousand times that a task store is opened, committed to and closed, nothing stays: no goroutine, no descriptor,
// no memory of Go's or of the caches', which are not on its heap. Among them are opens that fail, each at another read, and
// closes that fail because a store of the program's own does. (A database that failed while it wrote is another matter: Pebble
// cannot close it, and what is left of one is in TestFailureAtEveryWrite.)
func TestNothingStaysOfAThousandOpens(t *testing.T) {
	cycles := 1000
	if testing.Short() {
		cycles = 200
	}
	l := leaky{dir: memoryDir(t)}
	var before used
	for i := range cycles {
		if i == cycles/10 { // what the process takes once is taken
			before = resources(t)
		}
		switch i % 4 {
		case 0:
			l.failingOpen(t, int64(1+i/4%5)) // early, before the database works in the background
		case 1:
			l.failingClose(t, int64(i))
		}
		s := l.open(t, "0_0", countsSpec)
		must(t, handle(t, s, "counts").Put(fmt.Append(nil, i%100), make([]byte, 100), int64(i)))
		commit(t, s, Progress{ID: CommitID{1, int64(i + 1)}}, map[string]Offset{"counts": At(int64(i))})
		must(t, s.Close())
	}
	if l.opens < cycles/20 || l.closes != cycles/4 || Abandoned() > 0 {
		t.Errorf("%d opens and %d closes failed, %d databases were left behind", l.opens, l.closes, Abandoned())
	}
	var after used
	eventually(t, "no more goroutines than before", func() bool {
		after = resources(t)
		return after.goroutines <= before.goroutines
	})
	t.Logf("before %+v, after %+v; %d opens and %d closes failed", before, after, l.opens, l.closes)
	if after.descriptors > before.descriptors {
		t.Errorf("descriptors: %d, then %d", before.descriptors, after.descriptors)
	}
	if more := after.heap - before.heap; more > 4<<20 {
		t.Errorf("%d bytes more on the heap", more)
	}
	if more := after.resident - before.resident; more > 64<<20 && every == 1 { // the race detector has memory of its own
		t.Errorf("%d bytes more are resident", more)
	}
}

// leaky is a directory with task stores, and how many opens and closes have failed.
type leaky struct {
	dir           string
	opens, closes int
}

// open leaves the closing to the caller: a cleanup of the test would keep each store until its end.
func (l *leaky) open(t *testing.T, task string, specs ...Spec) *TaskStore {
	t.Helper()
	s, err := Open(filepath.Join(l.dir, task), Options{Logger: quiet()})
	must(t, err)
	must(t, s.Register(specs...))
	return s
}

// failingOpen opens with one read that fails, and again.
func (l *leaky) failingOpen(t *testing.T, at int64) {
	t.Helper()
	var reads atomic.Int64
	o := Options{Logger: quiet(), FS: errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead && reads.Add(1) == at {
			return &os.PathError{Op: "injected", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))}
	s, err := Open(filepath.Join(l.dir, "0_0"), o)
	if err != nil {
		l.opens++
		return
	}
	must(t, s.Close())
}

// failingClose closes a task store one of whose stores cannot be closed.
func (l *leaky) failingClose(t *testing.T, n int64) {
	t.Helper()
	own := ownSpec
	own.Store = unclosable{&fileStore{manages: true}}
	s := l.open(t, "0_1", countsSpec, own)
	must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), n))
	commit(t, s, Progress{ID: CommitID{1, n}}, map[string]Offset{"counts": At(n)})
	if err := s.Close(); !errors.Is(err, errUnclosable) {
		t.Errorf("close: %v", err)
		return
	}
	l.closes++
}

// unclosable cannot be closed, and keeps nothing.
type unclosable struct{ *fileStore }

var errUnclosable = errors.New("cannot be closed")

func (unclosable) Apply([]Row, StorePoint) error { return nil }
func (unclosable) Sync() error                   { return nil }
func (unclosable) Close() error                  { return errUnclosable }

// memoryDir is a directory on a file system that needs no disk, if there is one: what is looked for is not the disk's.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tidemark") //nolint:usetesting // not the file system of t.TempDir
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// used is what a process has.
type used struct {
	goroutines, descriptors int
	heap, resident          int64
}

func resources(t *testing.T) used {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory() // after finalizers have run
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	status, err := os.ReadFile("/proc/self/statm") // in pages: size, resident, ...
	must(t, err)
	var size, pages int64
	if _, err := fmt.Sscan(string(status), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return used{runtime.NumGoroutine(), len(open), int64(m.HeapAlloc), pages * int64(os.Getpagesize())}
}
