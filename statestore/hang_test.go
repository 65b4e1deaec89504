package statestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tidemark-streams/tidemark/internal/testlog"
)

func init() {
	children["hangs"] = hangsChild
}

// hangingFS does not answer what changes a file as long as it is locked.
type hangingFS struct {
	vfs.FS
	only  func(errorfs.Op) bool // nil: all
	hangs atomic.Bool
	waits atomic.Int32 // operations that wait
	mu    sync.RWMutex
}

func newHangingFS() *hangingFS {
	h := &hangingFS{}
	h.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if h.hangs.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && (h.only == nil || h.only(op)) {
			h.waits.Add(1)
			h.mu.RLock()
			h.mu.RUnlock() //nolint:staticcheck // it was only to be waited for
			h.waits.Add(-1)
		}
		return nil
	}))
	return h
}

func (h *hangingFS) hang() { h.mu.Lock(); h.hangs.Store(true) }
func (h *hangingFS) heal() { h.hangs.Store(false); h.mu.Unlock() }

// TestHangingDisk runs in a child process, because a database whose disk does not answer is left behind.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	out, err := child(t, "hangs")
	if err != nil || !strings.Contains(out, "survived") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// hanging is a call that waits for a disk which does not answer.
type hanging struct {
	call func(*TaskStore) error
	// at is what is waited for: nil is everything of the database; file is in the failure's text.
	at   func(errorfs.Op) bool
	file string
}

func hangsChild() {
	inPath := func(part string) func(errorfs.Op) bool {
		return func(op errorfs.Op) bool { return strings.Contains(op.Path, part) }
	}
	renamed := func(op errorfs.Op) bool { return op.Kind == errorfs.OpRename && strings.Contains(op.Path, ".partial-") }
	for name, h := range map[string]hanging{
		"background sync": {call: func(s *TaskStore) error { s.sync.arm(); return errWaits }, file: "t/0000"},
		"sync":            {call: (*TaskStore).Sync, file: "t/0000"},
		"commit": {call: func(s *TaskStore) error {
			x, err := s.Seal(Progress{})
			if err == nil {
				err = s.Commit(x, nil)
			}
			return err
		}, file: "t/0000"},
		"flush":            {call: func(*TaskStore) error { return errWaits }, file: "t/0000"},
		"run of a restore": {call: restoreRun, at: inPath(scratchName + "/"), file: "create t/" + scratchName + "/record.sst"},
		"scratch of a run": {call: restoreRun, at: inPath(scratchName), file: "remove t/" + scratchName},
		"sorted load":      {call: loadMuch, at: inPath(scratchName + "/"), file: "create t/" + scratchName + "/00000"},
		// What the database asks of the disk meanwhile may be named in these.
		"snapshot":            {call: func(s *TaskStore) error { return s.Snapshot("copy") }, at: inPath(".partial-")},
		"snapshot at its end": {call: func(s *TaskStore) error { return s.Snapshot("copy") }, at: renamed},
	} {
		if err := runWithHang(name, h); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			os.Exit(1)
		}
	}
	fmt.Println("survived")
}

func restoreRun(s *TaskStore) error {
	x, err := s.RestoreRuns("counts")
	if err != nil {
		return err
	}
	defer x.Close()
	return errors.Join(x.Add([]RestoreRecord{{Key: []byte("a"), Value: []byte("b")}}, 1), x.Flush())
}

// loadMuch loads more tables than are written at a time.
func loadMuch(s *TaskStore) error {
	value := make([]byte, 9<<20)
	return s.LoadSorted("counts", func(yield func(Row, error) bool) {
		for i := range 2*runtime.GOMAXPROCS(0) + 2 {
			if !yield(Row{Key: fmt.Appendf(nil, "%06d", i), Value: value}, nil) {
				return
			}
		}
	})
}

// errWaits: it is Close that waits.
var errWaits = errors.New("waits")

func runWithHang(name string, h hanging) error {
	fs, log := newHangingFS(), &testlog.Log{}
	fs.only = h.at
	o := memOptions(fs)
	o.Logger = log.Logger()
	o.SyncInterval, o.stallAfter, o.hangTimeout = time.Hour, 50*time.Millisecond, 400*time.Millisecond
	o.SyncEveryCommit = name == "commit"
	commits := name == "background sync" || name == "sync" || name == "flush" // before the disk hangs
	if name == "background sync" {
		o.SyncInterval = time.Millisecond
	}
	s, err := Open("t", o)
	if err != nil {
		return err
	}
	if err := s.Register(countsSpec); err != nil {
		return err
	}
	if h.at == nil {
		if err := s.handles["counts"].Put([]byte("a"), []byte("b"), 1); err != nil {
			return err
		}
	}
	if commits {
		x, err := s.Seal(Progress{})
		if err != nil {
			return err
		}
		fs.hang() // before a background sync
		if err := s.Commit(x, nil); err != nil {
			return err
		}
		s.Release(x)
	} else {
		fs.hang()
	}
	called := make(chan error, 1)
	go func() { called <- h.call(s) }()
	if name != "background sync" && name != "flush" { // first the log tells, without an end
		// A slow disk may also have been told of before the call had begun.
		if !waitFor(func() bool {
			return len(called) > 0 || fs.waits.Load() > 0 && log.Count("the disk is slow, or does not answer") > 0
		}) {
			return errors.New("nothing in the log")
		}
		select {
		case err := <-called:
			return fmt.Errorf("it did not wait: %w", err)
		default:
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for _, c := range []chan error{closed, called} {
		select {
		case err := <-c:
			if errors.Is(err, errWaits) || err == nil && !commits && c == closed { // all that was committed is on the disk
				continue
			}
			if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "the disk has not answered for") || !strings.Contains(err.Error(), h.file) || !strings.Contains(err.Error(), "restart") {
				return fmt.Errorf("%w; want the operation, the file and what to do", err)
			}
		case <-time.After(60 * time.Second):
			return errors.New("hangs")
		}
	}
	if log.Count("the disk has not answered for") == 0 {
		return errors.New("the log says nothing of the failure")
	}
	fs.heal()
	return nil
}

// TestSlowSyncIsTold: what is slow is told, and then goes on.
func TestSlowSyncIsTold(t *testing.T) {
	fs, log := newHangingFS(), &testlog.Log{}
	o := memOptions(fs)
	o.Logger = log.Logger()
	o.stallAfter = time.Millisecond
	s := openStore(t, "t", o, countsSpec)
	must(t, handle(t, s, "counts").Put([]byte("a"), []byte("b"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	fs.hang()
	synced := make(chan error, 1)
	go func() { synced <- s.Sync() }()
	poll(t, "the log to tell", func() bool {
		return log.Count("the disk is slow, or does not answer") > 0 && log.Count("operation=sync") > 0
	})
	fs.heal()
	must(t, <-synced)
	poll(t, "the log to tell the end", func() bool { return log.Count("the call that waited for the disk has ended") > 0 })
	must(t, s.Close())
}

// TestCloseBesideAHangingDisk: a task store whose background sync waits for the slot that another one has, closes all the same.
func TestCloseBesideAHangingDisk(t *testing.T) {
	r, err := NewResources(ResourceOptions{Syncs: 1})
	must(t, err)
	hanging := newHangingFS()
	o := memOptions(hanging)
	o.Resources, o.SyncInterval, o.stallAfter = r, time.Millisecond, time.Millisecond
	log := &testlog.Log{}
	o.Logger = log.Logger()
	a := openStore(t, "a", o, countsSpec)
	o.FS = vfs.NewMem()
	b := openStore(t, "b", o, countsSpec)
	must(t, handle(t, a, "counts").Put([]byte("a"), []byte("b"), 1))
	must(t, handle(t, b, "counts").Put([]byte("a"), []byte("b"), 1))
	hanging.hang()
	commit(t, a, Progress{ID: CommitID{1, 1}}, nil)
	poll(t, "the sync to hang", func() bool { return log.Count("operation=sync") > 0 })
	commit(t, b, Progress{ID: CommitID{1, 1}}, nil)
	must(t, b.Close())
	hanging.heal()
	must(t, a.Close())
	must(t, r.Close())
}

// poll waits for a condition.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !waitFor(done) {
		t.Fatalf("waited in vain for %s", what)
	}
}

func waitFor(done func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !done(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
