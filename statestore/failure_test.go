package statestore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func init() {
	children["failures"] = failuresChild
}

// child runs a part of the tests in a process of its own and gives its output.
func child(t *testing.T, name string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+name), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// TestFailureAtEveryWrite makes every operation that changes the file system fail in turn,
// as a full disk that stays full and as one input/output error. The process must live, no
// call may hang, and what is on the disk must be the state after one commit. It runs in a
// child process, because databases that Pebble cannot close are left behind.
func TestFailureAtEveryWrite(t *testing.T) {
	t.Parallel()
	out, err := child(t, "failures")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "survived") {
		t.Fatalf("the child says %q", out)
	}
	t.Log(strings.TrimSpace(out))
}

func failuresChild() {
	total := int64(0)
	for _, kind := range []struct {
		name  string
		errno syscall.Errno
		stays bool
	}{{"disk full", syscall.ENOSPC, true}, {"one input/output error", syscall.EIO, false}} {
		left := Abandoned()
		for i := int64(1); ; i += every {
			reached, err := runWithFailure(i, kind.errno, kind.stays)
			if err != nil {
				fmt.Printf("%s at write %d: %v\n", kind.name, i, err)
				os.Exit(1)
			}
			if !reached {
				total += i - 1
				fmt.Printf("survived %s at each %d. of %d writes: %d databases left behind\n", kind.name, every, i-1, Abandoned()-left)
				break
			}
		}
	}
	if total < 200 {
		fmt.Println("the script writes too little")
		os.Exit(1)
	}
}

// runWithFailure tells whether the script came to write number at.
func runWithFailure(at int64, errno syscall.Errno, stays bool) (reached bool, err error) {
	c := &script{commits: 8, big: 2}
	fs := newCrashFS()
	var hit atomic.Bool
	o := memOptions(errorfs.Wrap(fs, onWrite(func(i int64) error {
		if i == at || stays && i > at {
			hit.Store(true)
			return &os.PathError{Op: "write", Path: "injected", Err: errno}
		}
		return nil
	})))
	o.closeTimeout = 5 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- c.run("t", o) }()
	select {
	case err = <-done:
	case <-time.After(20 * time.Second):
		return true, errors.New("hangs")
	}
	if err != nil && !hit.Load() {
		return false, fmt.Errorf("failed before anything was injected: %w", err)
	}
	if err != nil && !errors.Is(err, ErrFailed) && !strings.HasPrefix(err.Error(), "open task store t: ") && !strings.HasPrefix(err.Error(), "close task store t: ") {
		return true, fmt.Errorf("the error does not say what failed: %w", err)
	}
	if err != nil && stays && !errors.Is(err, errno) && !strings.Contains(err.Error(), errno.Error()) {
		return true, fmt.Errorf("the error does not say why: %w", err)
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	n, err := c.verify("t", memOptions(clone))
	if err != nil {
		return true, fmt.Errorf("what is left: %w", err)
	}
	if n < c.acked.Load() || n > c.begun.Load() {
		return true, fmt.Errorf("commit %d is left; acknowledged %d, begun %d", n, c.acked.Load(), c.begun.Load())
	}
	return hit.Load(), nil
}

func TestFailedStoreSaysWhyAndWhatToDo(t *testing.T) {
	fs := vfs.NewMem()
	var broken atomic.Bool
	o := memOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	})))
	o.CacheBytes = -1
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 2000 { // many blocks: what Register reads must not be all
		value := make([]byte, 500) // that do not compress
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		must(t, kv.Put(fmt.Appendf(nil, "key-%04d", i), value, 1))
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())

	s = openStore(t, "t", o, countsSpec)
	kv = handle(t, s, "counts")
	broken.Store(true)
	var first error
	for i := 0; i < 2000 && first == nil; i++ {
		_, _, _, first = kv.Get(fmt.Appendf(nil, "key-%04d", i))
	}
	for _, want := range []string{"task store has failed: t: ", "input/output error", "restart"} {
		if first == nil || !strings.Contains(first.Error(), want) {
			t.Errorf("get with a broken disk: %v; want %q in it", first, want)
		}
	}
	broken.Store(false)
	select {
	case <-s.Failed():
	default:
		t.Error("Failed is not closed")
	}
	_, err := s.Seal(Progress{})
	for name, err := range map[string]error{
		"put": kv.Put(nil, nil, 1), "seal": err, "sync": s.Sync(), "clear": s.Clear("counts"), "err": s.Err(),
	} {
		if !errors.Is(err, ErrFailed) || err.Error() != first.Error() {
			t.Errorf("%s after the failure: %v; want the first cause", name, err)
		}
	}
	for _, err := range kv.All() {
		if !errors.Is(err, ErrFailed) {
			t.Errorf("scan: %v", err)
		}
	}
	must(t, s.Close())
}

// A flush that fails in the background ends the store at once, not at the commit that
// finds all memtables full and waits for ever.
func TestBackgroundFailure(t *testing.T) {
	var broken atomic.Bool
	o := memOptions(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})))
	s := openStore(t, "t", o, countsSpec)
	kv := handle(t, s, "counts")
	broken.Store(true)
	for i := range 600 {
		must(t, kv.Put(fmt.Append(nil, i), make([]byte, 1000), 1))
	}
	x, err := s.Seal(Progress{})
	must(t, err)
	if err := s.Commit(x, nil); err != nil && !errors.Is(err, ErrFailed) {
		t.Errorf("commit: %v", err)
	}
	select {
	case <-s.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("a flush that fails does not end the store")
	}
	if err := s.Err(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "background work") {
		t.Errorf("%v; want the cause", err)
	}
	left := Abandoned()
	if err := s.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v; want the failure: nothing was synced", err)
	}
	if Abandoned() != left {
		t.Error("the store could have been closed, and was left behind")
	}
}

// damage changes one byte in the middle of each file that pattern matches.
func damage(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	must(t, err)
	if len(names) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		b[len(b)/3] ^= 0xff
		must(t, os.WriteFile(name, b, 0o600))
	}
}

func TestDamage(t *testing.T) {
	fill := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "0_0")
		s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
		kv := handle(t, s, "counts")
		for i := range 2000 {
			must(t, kv.Put(fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte{byte(i)}, 50), 1))
		}
		commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
		must(t, s.Close())
		return dir
	}
	t.Run("table", func(t *testing.T) {
		dir := fill(t)
		damage(t, filepath.Join(dir, "*.sst"))
		s, err := Open(dir, Options{Logger: quiet()})
		if err == nil {
			defer s.Close()
			if err = s.Register(countsSpec); err == nil {
				kv := handle(t, s, "counts")
				n := 0
				for _, e := range kv.All() {
					err = e
					n++
				}
				if n >= 2000 {
					t.Error("the scan found everything")
				}
			}
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v; want ErrCorrupt and the directory", err)
		}
	})
	t.Run("manifest", func(t *testing.T) {
		dir := fill(t)
		damage(t, filepath.Join(dir, "MANIFEST-*"))
		if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v; want ErrCorrupt", err)
		}
	})
	t.Run("markers gone", func(t *testing.T) {
		dir := fill(t)
		names, _ := filepath.Glob(filepath.Join(dir, "marker.*"))
		for _, n := range names {
			must(t, os.Remove(n))
		}
		if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v; want ErrCorrupt, and no new database over the old one", err)
		}
	})
	t.Run("truncated table", func(t *testing.T) {
		dir := fill(t)
		names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
		for _, n := range names {
			must(t, os.Truncate(n, 100))
		}
		if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v; want ErrCorrupt", err)
		}
	})
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
	if _, err := Open(dir, Options{Logger: quiet()}); !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v; want ErrLocked", err)
	}
	must(t, s.Close())
	must(t, openStore(t, dir, Options{Logger: quiet()}).Close())
}

func TestUnfinishedCreation(t *testing.T) {
	fs := vfs.NewMem()
	unfinished := func() {
		t.Helper()
		f, err := fs.Create("t/"+creatingName, vfs.WriteCategoryUnspecified)
		must(t, err)
		must(t, f.Close())
	}
	s := openStore(t, "t", memOptions(fs), countsSpec)
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	unfinished() // the database was finished; removing the file was not
	s = openStore(t, "t", memOptions(fs), countsSpec)
	if s.OpenStats().Created || s.CommitID() != (CommitID{1, 1}) {
		t.Errorf("opened: %+v, commit %v", s.OpenStats(), s.CommitID())
	}
	if _, err := fs.Stat("t/" + creatingName); err == nil {
		t.Error("the file of the creation is still there")
	}
	must(t, s.Close())
	unfinished()
	names, err := fs.List("t")
	must(t, err)
	for _, n := range names {
		if strings.HasPrefix(n, "MANIFEST-") { // what was not finished is not readable
			must(t, fs.Remove("t/"+n))
		}
	}
	s = openStore(t, "t", memOptions(fs), countsSpec)
	if !s.OpenStats().Created {
		t.Errorf("opened: %+v; want a new database", s.OpenStats())
	}
}

func TestForeignFilesDoNotMatter(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{".checkpoint", "counts.position", ".lock"} {
		must(t, os.WriteFile(filepath.Join(dir, n), []byte("0\n0\n"), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "rocksdb", "counts"), 0o700))
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
	if !s.OpenStats().Created {
		t.Error("no database was created beside the files of Kafka Streams")
	}
	must(t, s.Close())
}

func TestUnwritableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(filepath.Join(file, "0_0"), Options{Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "open task store "+file) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v; want the path and the cause", err)
	}
}
