package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestSnapshotOfARunningStore(t *testing.T) {
	base := t.TempDir()
	s := writeSome(t, filepath.Join(base, "0_0"), Options{Logger: quiet()})
	to := filepath.Join(base, "backup", "app", "0_0")
	must(t, handle(t, s, "counts").Put([]byte("uncommitted"), []byte("x"), 1))
	must(t, s.Snapshot(to))
	if err := s.Snapshot(to); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over another: %v", err)
	}
	commit(t, s, Progress{ID: CommitID{3, 8}}, nil)
	wantSome(t, readOnly(t, to, ReadOptions{})) // neither what was not committed nor what came later
	for _, dir := range []string{to, filepath.Dir(to), filepath.Dir(filepath.Dir(to))} {
		info, err := os.Stat(dir)
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v", dir, info.Mode())
		}
	}
	names, err := os.ReadDir(filepath.Dir(to))
	must(t, err)
	if len(names) != 1 {
		t.Errorf("left beside it: %v", names)
	}
	copied := openStore(t, to, Options{Logger: quiet()}, countsSpec, latestSpec) // it is a task store like any other
	wantValue(t, handle(t, copied, "latest"), "a", "new")
	must(t, copied.Close())
	must(t, s.Close())
	if err := s.Snapshot(to + "2"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Snapshots taken while another goroutine commits are the state after one commit.
func TestSnapshotWhileCommitting(t *testing.T) {
	base := t.TempDir()
	c := &script{big: 10}
	s, err := c.open(filepath.Join(base, "0_0"), Options{Logger: quiet(), MemTableBytes: 256 << 10})
	must(t, err)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := c.commit(s, n); err != nil {
				done <- err
				return
			}
			c.acked.Store(int64(n)) // a snapshot takes what is committed to the disk
		}
	}()
	distinct := map[int64]bool{}
	for i := range 5 {
		acked := c.acked.Load()
		to := filepath.Join(base, fmt.Sprint("snapshot", i))
		must(t, s.Snapshot(to))
		begun := c.begun.Load()
		got, err := c.verify(to, Options{Logger: quiet()})
		must(t, err)
		if got < acked || got > begun {
			t.Errorf("snapshot holds commit %d; acknowledged before it %d, begun after it %d", got, acked, begun)
		}
		distinct[got] = true
	}
	close(stop)
	must(t, <-done)
	must(t, s.Close())
	if len(distinct) < 2 {
		t.Errorf("all snapshots are of one commit: %v", distinct)
	}
}

func TestSnapshotOfAClosedDirectory(t *testing.T) {
	mem := newCrashFS()
	s := writeSome(t, "t", memOptions(mem))
	must(t, s.Sync())
	for name, links := range map[string]bool{"linked": true, "copied": false} {
		t.Run(name, func(t *testing.T) {
			clone := mem.CrashClone(vfs.CrashCloneCfg{}) // with a log to replay
			c := openStore(t, "t", memOptions(clone), countsSpec)
			must(t, c.Close()) // and now also a table
			fs := errorfs.Wrap(clone, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpLink && !links {
					return syscall.EXDEV
				}
				return nil
			}))
			o := ReadOptions{FS: fs, Logger: quiet()}
			must(t, SnapshotDir("t", "x/y", o))
			if err := SnapshotDir("t", "x/y", o); err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("over another: %v", err)
			}
			after := clone.CrashClone(vfs.CrashCloneCfg{}) // all of it is on the disk
			wantSome(t, readOnly(t, "x/y", ReadOptions{FS: after}))
			if err := SnapshotDir("none", "z", o); !errors.Is(err, ErrNoStore) {
				t.Errorf("of nothing: %v", err)
			}
			if _, err := fs.Stat("z"); err == nil {
				t.Error("a snapshot of nothing was made")
			}
		})
	}
}

// From outside, while the task store is open and commits, flushes and compacts.
func TestSnapshotOfARunningDirectory(t *testing.T) {
	for name, links := range map[string]bool{"linked": true, "copied": false} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			c := &script{big: 3}
			dir := filepath.Join(base, "0_0")
			s, err := c.open(dir, Options{Logger: quiet(), MemTableBytes: 256 << 10, SyncEveryCommit: true})
			must(t, err)
			stop, done := make(chan struct{}), make(chan error, 1)
			go func() {
				for n := 1; ; n++ {
					select {
					case <-stop:
						done <- nil
						return
					default:
					}
					if err := c.commit(s, n); err != nil {
						done <- err
						return
					}
					c.acked.Store(int64(n))
				}
			}()
			o := ReadOptions{Logger: quiet(), FS: errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpLink && !links {
					return syscall.EXDEV
				}
				return nil
			}))}
			for i := range 8 {
				acked := c.acked.Load()
				to := filepath.Join(base, fmt.Sprint("snapshot", i))
				err := SnapshotDir(dir, to, o)
				for tries := 1; err != nil && strings.Contains(err.Error(), "changed all the time") && tries < 200; tries++ {
					err = SnapshotDir(dir, to, o) // the writer here does nothing else
				}
				must(t, err)
				begun := c.begun.Load()
				got, err := c.verify(to, Options{Logger: quiet()})
				must(t, err)
				if got < acked || got > begun {
					t.Errorf("snapshot holds commit %d; acknowledged before it %d, begun after it %d", got, acked, begun)
				}
			}
			close(stop)
			must(t, <-done)
			must(t, s.Close())
			_, err = c.verify(dir, Options{Logger: quiet()})
			must(t, err) // looking at it did it no harm
		})
	}
}

// No step of a snapshot that fails hurts the task store, or leaves something under the
// snapshot's name that is not whole.
func TestSnapshotThatFails(t *testing.T) {
	failures := 0
	for at := int64(1); ; at++ {
		mem := vfs.NewMem()
		var on atomic.Bool
		var n atomic.Int64
		o := memOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, "backup") && n.Add(1) == at {
				return syscall.ENOSPC
			}
			return nil
		})))
		s := writeSome(t, "t", o)
		on.Store(true)
		err := s.Snapshot("backup/0_0")
		on.Store(false)
		if err == nil && n.Load() < at {
			break
		}
		failures++
		if err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "backup/0_0")) {
			t.Errorf("write %d: %v; want the cause and the path", at, err)
		}
		must(t, s.Err())
		must(t, handle(t, s, "counts").Put([]byte("k"), []byte("v"), 1))
		commit(t, s, Progress{ID: CommitID{4, 1}}, nil)
		if _, statErr := mem.Stat("backup/0_0"); statErr == nil {
			wantSome(t, readOnly(t, "backup/0_0", ReadOptions{FS: mem}))
		} else if err == nil {
			t.Errorf("write %d: no error and no snapshot", at)
		}
		must(t, s.Close())
	}
	if failures < 10 {
		t.Errorf("only %d writes could fail", failures)
	}
}
