package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func init() {
	children["disk full"] = diskFullChild
}

// mount gives a real file system of 4 MiB, if this user may mount one.
func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

const diskEnv = "TIDEMARK_STATESTORE_DISK"

// A disk that is full for real: the task store fails, with an error that says where, why and
// what to do, the process lives, and what was committed and synced is there when there is
// space again. It runs in a child process, because the database may be left behind.
func TestDiskFullForReal(t *testing.T) {
	dir := mount(t)
	out, err := child(t, "disk full", diskEnv+"="+dir)
	if err != nil || !strings.Contains(out, "acknowledged") {
		t.Fatalf("%v\n%s", err, out)
	}
	var acked, begun int64
	if _, err := fmt.Sscanf(out[strings.Index(out, "acknowledged"):], "acknowledged %d begun %d", &acked, &begun); err != nil || acked == 0 {
		t.Fatalf("%v in %s", err, out)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	c := &script{big: 1}
	n, err := c.verify(filepath.Join(dir, "0_0"), Options{Logger: quiet()})
	must(t, err)
	if n < acked || n > begun {
		t.Errorf("commit %d is left; acknowledged %d, begun %d", n, acked, begun)
	}
}

func diskFullChild() {
	dir := filepath.Join(os.Getenv(diskEnv), "0_0")
	c := &script{commits: 1 << 30, big: 1}
	done := make(chan error, 1)
	go func() {
		done <- c.run(dir, Options{Logger: quiet(), MemTableBytes: 256 << 10, closeTimeout: 50 * time.Millisecond})
	}()
	err := fillDisk(os.Getenv(diskEnv), done, &c.acked)
	for _, want := range []string{dir, "no space left on device", "free some space", "what was committed and synced is intact"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			fmt.Printf("%v; want %q in it\n", err, want)
			os.Exit(1)
		}
	}
	fmt.Printf("acknowledged %d begun %d\n", c.acked.Load(), c.begun.Load())
}

// fillDisk takes all the space that is left, once something was acknowledged, until done.
func fillDisk(dir string, done <-chan error, acked *atomic.Int64) error {
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		select {
		case err := <-done:
			return err
		default:
			if acked.Load() > 20 {
				_, _ = f.Write(make([]byte, 4096)) // fails when the disk is full, until a file goes
			}
		}
	}
}

// A file system that became read-only cannot be written to, and can be looked at.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := filepath.Join(mount(t), "0_0")
	must(t, writeSome(t, dir, Options{Logger: quiet(), MemTableBytes: 256 << 10}).Close())
	root := filepath.Dir(dir)
	must(t, syscall.Mount("tmpfs", root, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, path := range []string{dir, filepath.Join(root, "0_1")} {
		_, err := Open(path, Options{Logger: quiet()})
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "must be able to write there") {
			t.Errorf("open %s: %v; want the path, the cause and what to do", path, err)
		}
	}
	wantSome(t, readOnly(t, dir, ReadOptions{}))
}

// A disk that takes long for every sync holds up nobody who did not ask for the disk: puts,
// reads and commits go on, and Sync returns when the disk has answered.
func TestSlowDisk(t *testing.T) {
	var slow sync.RWMutex // write-held while the disk does not answer
	blocked := make(chan struct{}, 100)
	o := memOptions(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			select {
			case blocked <- struct{}{}:
			default:
			}
			slow.RLock()
			slow.RUnlock() //nolint:staticcheck // it only waits
		}
		return nil
	})))
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	slow.Lock()
	for len(blocked) > 0 {
		<-blocked
	}
	synced := make(chan error, 1)
	for n := range int64(50) {
		must(t, kv.Put([]byte("k"), fmt.Append(nil, n), 1))
		wantValue(t, kv, "k", fmt.Sprint(n))
		commit(t, s, Progress{ID: CommitID{1, n + 1}}, nil)
		if n == 0 {
			go func() { synced <- s.Sync() }()
			<-blocked
		}
	}
	select {
	case err := <-synced:
		t.Errorf("Sync returned before the disk: %v", err)
	default:
	}
	if o := s.DurablePositions(); o != nil {
		t.Errorf("durable positions %v", o)
	}
	slow.Unlock()
	must(t, <-synced)
	must(t, s.Close())
}
