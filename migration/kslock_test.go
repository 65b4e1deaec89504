package migration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// lockVariable names the file on which the child holds the lock that Java takes.
const lockVariable = "MIGRATION_TEST_LOCK"

func holdLikeJava(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	fmt.Println("held:", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func TestKafkaStreamsRuns(t *testing.T) {
	dir := taskWith(t, checkpointName, []byte("0\n0\n"))
	lock := filepath.Join(dir, "app", ".lock")
	must(t, os.WriteFile(lock, nil, 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), lockVariable+"="+lock)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if said, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || said != "held: <nil>\n" {
		t.Fatalf("%q, %v", said, err)
	}
	_, err = Apply(t.Context(), dir, Options{})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Kafka Streams application (process %d)", cmd.Process.Pid)) {
		t.Errorf("%v", err)
	}
	if _, err := Plan(t.Context(), dir, Options{}); err != nil {
		t.Errorf("Plan: %v", err)
	}
	must(t, stdin.Close())
	must(t, cmd.Wait())
	if _, err := Apply(t.Context(), dir, Options{}); err != nil {
		t.Error(err)
	}
}
