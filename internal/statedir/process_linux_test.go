package statedir

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is also the second process of these tests: with this variable it
// plays the part that the variable names, in the directory that follows.
const partVariable = "STATEDIR_TEST_PART"

func TestMain(m *testing.M) {
	part, root, _ := strings.Cut(os.Getenv(partVariable), ":")
	switch part {
	case "":
		os.Exit(m.Run())
	case "hold":
		hold(root)
	case "full":
		fillDisk(root)
	case "clean":
		cleanInChild(root)
	}
}

func child(t *testing.T, part, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), partVariable+"="+part+":"+root)
	cmd.Stderr = os.Stderr
	return cmd
}

func die(err error) {
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(3)
}

// hold opens the directory, records an id, says so, and then waits for its end.
func hold(root string) {
	d, err := Open(root, "app")
	if err != nil {
		die(err)
	}
	if err := d.RecordTransactionalID("from-the-child"); err != nil {
		die(err)
	}
	fmt.Println(d.ProcessID())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestSecondProcess(t *testing.T) {
	root := t.TempDir()
	cmd := child(t, "hold", root)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}

	_, err = Open(root, "app")
	host, _ := os.Hostname()
	wantError(t, err, "already in use", fmt.Sprintf("process %d on %s (since 2", cmd.Process.Pid, host), "stop that process")

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that it was killed
	d := open(t, root)
	if got := d.ProcessID(); got != strings.TrimSpace(id) {
		t.Errorf("process id %q, the killed process had %q", got, id)
	}
	if got, want := d.TransactionalIDs(), []string{"from-the-child"}; !reflect.DeepEqual(got, want) {
		t.Errorf("ids %q, the killed process recorded %q", got, want)
	}
}

// fillDisk makes the system refuse to let a file grow beyond 20 bytes and tries what a
// full disk does: an id that fits only in part, a short one that fits, and another.
// (A limit on the size of files stands for the disk, as it needs no rights.)
func fillDisk(root string) {
	d, err := Open(root, "app")
	if err != nil {
		die(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 20, Max: unix.RLIM_INFINITY}); err != nil {
		die(err)
	}
	for _, id := range []string{"first", "second-which-is-too-long", "third"} {
		fmt.Println(d.RecordTransactionalID(id))
	}
	_, err = Open(filepath.Join(root, "new"), "app")
	fmt.Println(err)
	if err := d.Close(); err != nil {
		die(err)
	}
}

func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	out, err := child(t, "full", root).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 || lines[0] != "<nil>" || lines[2] != "<nil>" {
		t.Fatalf("child said %q", lines)
	}
	path := filepath.Join(root, "app", transactionalIDsFile)
	for _, w := range []string{`record transactional id "second-which-is-too-long"`, path, "file too large"} {
		if !strings.Contains(lines[1], w) {
			t.Errorf("error %q does not say %q", lines[1], w)
		}
	}
	if !strings.Contains(lines[3], "open state directory") || !strings.Contains(lines[3], "file too large") {
		t.Errorf("Open on a full disk: %q", lines[3])
	}
	if got, want := open(t, root).TransactionalIDs(), []string{"first", "third"}; !reflect.DeepEqual(got, want) {
		t.Errorf("ids after the full disk %q, want %q", got, want)
	}
	open(t, filepath.Join(root, "new")) // nothing half-made is left behind
}

// asNobody runs f without the rights of root: root may write everywhere.
func asNobody(t *testing.T, f func()) {
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The user id for files belongs to the thread; it is not unlocked, so that it
		// ends with this goroutine.
		runtime.LockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Errorf("setfsuid: %v", err)
			return
		}
		f()
	}()
	<-done
}

func TestNotWritable(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "statedir") //nolint:usetesting // the parent of t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(root, 0o700) })
	asNobody(t, func() {
		_, err := Open(root, "app")
		if err == nil || !strings.Contains(err.Error(), "permission denied: this user must be able to write there") ||
			!strings.Contains(err.Error(), root) {
			t.Errorf("new app directory in a read-only state directory: %v", err)
		}
	})
	if err := os.Mkdir(filepath.Join(root, "app"), 0o555); err != nil && os.Getuid() == 0 {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return // could not make the second case's directory
	}
	asNobody(t, func() {
		_, err := Open(root, "app")
		if err == nil || !strings.Contains(err.Error(), "permission denied: this user must be able to write there") ||
			!strings.Contains(err.Error(), lockFile) {
			t.Errorf("read-only app directory: %v", err)
		}
	})
}
