package statestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func init() {
	children["errnos"] = errnosChild
}

// TestErrorsUnderAnOpenStore lets descriptors run out, and the file system become read-only, while a store is
// written to. Each ends as the failure of that task store, with file, cause and what to do, and the
// process lives. It runs in a child process, because databases that Pebble cannot close are left behind.
func TestErrorsUnderAnOpenStore(t *testing.T) {
	t.Parallel()
	out, err := child(t, "errnos")
	if err != nil || !strings.Contains(out, "survived") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func errnosChild() {
	const descriptors, readOnly = "raise the limit of open files", "must be able to write there"
	opens := func(op errorfs.Op) bool {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpReuseForWrite:
			return true
		}
		return false
	}
	writes := func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }
	for _, x := range []struct {
		name  string
		errno syscall.Errno
		hits  func(op errorfs.Op) bool
		file  string // that is named, and alone affected; "": any
		tells string
	}{
		{"no descriptor for a flush", syscall.EMFILE, func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate }, ".sst", descriptors},
		{"no descriptor to read a table in a compaction", syscall.EMFILE, func(op errorfs.Op) bool { return op.Kind == errorfs.OpOpen }, ".sst", descriptors},
		{"no descriptor for a log", syscall.EMFILE, opens, ".log", descriptors},
		{"no descriptor for anything", syscall.EMFILE, opens, "", descriptors},
		{"none in the system", syscall.ENFILE, opens, "", descriptors},
		{"read-only file system", syscall.EROFS, writes, "", readOnly},
		{"read-only file system, met by a flush", syscall.EROFS, writes, ".sst", readOnly},
		{"read-only file system, met by a manifest", syscall.EROFS, writes, "MANIFEST", readOnly},
	} {
		if err := runWithErrno(x.errno, x.hits, x.file, x.tells); err != nil {
			fmt.Printf("%s: %v\n", x.name, err)
			os.Exit(1)
		}
	}
	fmt.Println("survived")
}

func runWithErrno(errno syscall.Errno, hits func(errorfs.Op) bool, file, tells string) error {
	var on atomic.Bool
	mem := newCrashFS()
	o := memOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && hits(op) && strings.Contains(op.Path, file) {
			return &os.PathError{Op: "reach", Path: op.Path, Err: errno}
		}
		return nil
	})))
	o.closeTimeout = 20 * time.Millisecond
	s, err := Open("t", o)
	if err != nil {
		return err
	}
	if err := s.Register(countsSpec); err != nil {
		return err
	}
	number, acked := int64(0), int64(0)
	err = writeUntilFailure(s, func() { number++ }, func() {
		if acked = number; number == 3 {
			on.Store(true)
		}
	}, &number)
	if !errors.Is(err, ErrFailed) {
		return fmt.Errorf("%w after %d commits; want ErrFailed", err, number)
	}
	for _, want := range []string{errno.Error(), tells, "t/", file} {
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("%w; want %q in it", err, want)
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.Close() // the store has failed
	}()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		return errors.New("close hangs")
	}
	again, err := Open("t", memOptions(mem.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		return fmt.Errorf("open what is left: %w", err)
	}
	if n := again.CommitID().Number; n < acked || n > number {
		return fmt.Errorf("commit %d is left; %d were synced, %d begun", n, acked, number)
	}
	return again.Close()
}

// writeUntilFailure commits and syncs until that fails. It fails by itself if it does not.
func writeUntilFailure(s *TaskStore, begin, synced func(), number *int64) error {
	kv := s.handles[countsSpec.Name]
	for range 3000 {
		begin()
		for i := range 40 {
			if err := kv.Put(fmt.Append(nil, (*number*7+int64(i))%500), make([]byte, 1000), 1); err != nil {
				return err
			}
		}
		x, err := s.Seal(Progress{ID: CommitID{1, *number}})
		if err != nil {
			return err
		}
		if err := s.Commit(x, nil); err != nil {
			return err
		}
		s.Release(x)
		if err := s.Sync(); err != nil {
			return err
		}
		synced()
	}
	return nil
}
