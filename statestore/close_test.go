package statestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func init() {
	children["lost at close"] = lostAtCloseChild
}

// TestCloseTellsWhatIsLost: if the log cannot be written after the last call, and before
// anybody asks, only Close can tell that what was written is lost. It runs in a child
// process, because the databases are left behind.
func TestCloseTellsWhatIsLost(t *testing.T) {
	t.Parallel()
	out, err := child(t, "lost at close")
	if err != nil || strings.Count(out, "told") != len(writesWithoutSync) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func lostAtCloseChild() {
	for name, write := range writesWithoutSync {
		if err := loseAtClose(write); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			os.Exit(1)
		}
		fmt.Printf("%s: told\n", name)
	}
}

// writesWithoutSync are the calls that write and do not wait for the disk. Each writes more
// than a block of the log, which goes to the file in the background.
var writesWithoutSync = map[string]func(*TaskStore) error{
	"commit": func(s *TaskStore) error {
		kv, err := s.KeyValue("counts")
		if err != nil {
			return err
		}
		if err := kv.Put([]byte("key"), make([]byte, 100<<10), 1); err != nil {
			return err
		}
		x, err := s.Seal(Progress{ID: CommitID{1, 1}})
		if err != nil {
			return err
		}
		defer s.Release(x)
		return s.Commit(x, nil)
	},
	"restore": func(s *TaskStore) error {
		return s.Restore("counts", []RestoreRecord{{Key: []byte("key"), Value: make([]byte, 100<<10)}}, 1)
	},
	"load": func(s *TaskStore) error {
		return s.Load("counts", []RestoreRecord{{Key: []byte("key"), Value: make([]byte, 100<<10)}})
	},
	"stamp": func(s *TaskStore) error {
		return s.StampOwner(Owner{ProcessID: strings.Repeat("x", 100<<10)})
	},
}

// breakableLog is a file system with a log that cannot be written once broken is set. A write
// of it waits for fail.
func breakableLog(fs vfs.FS, broken *atomic.Bool, fail <-chan struct{}) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !broken.Load() || op.Kind != errorfs.OpFileWrite || !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		<-fail
		return &os.PathError{Op: "write", Path: op.Path, Err: syscall.EIO}
	}))
}

func loseAtClose(write func(*TaskStore) error) error {
	fs, fail := newCrashFS(), make(chan struct{})
	var broken atomic.Bool
	c := &script{}
	s, err := c.open("t", memOptions(breakableLog(fs, &broken, fail)))
	if err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	broken.Store(true)
	if err := write(s); err != nil {
		return fmt.Errorf("before anything failed: %w", err)
	}
	close(fail)
	<-s.Failed()
	if err := s.Close(); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("close: %w; want the failure", err)
	}
	left, err := c.open("t", memOptions(fs.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		return err
	}
	kv, err := left.KeyValue("counts")
	if err != nil {
		return err
	}
	if _, _, ok, err := kv.Get([]byte("key")); ok || err != nil || left.CommitID() != (CommitID{}) || left.Owner() != (Owner{}) {
		return fmt.Errorf("nothing was lost: key %t, %w, commit %v", ok, err, left.CommitID())
	}
	return left.Close()
}

// A failure that came when all was on the disk is not one of Close.
func TestCloseOfFailedStoreThatLosesNothing(t *testing.T) {
	s := openStore(t, "t", memOptions(vfs.NewMem()), countsSpec)
	must(t, handle(t, s, "counts").Put([]byte("key"), []byte("value"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Sync())
	if err := s.db.Fail("test", syscall.EIO); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	must(t, s.Close())
}
