package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testlog"
)

// asProgram makes the test binary the program.
const asProgram = "WORDCOUNT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" { // also in its broker, for which main cares
		main()
		return
	}
	os.Exit(m.Run())
}

// run is a run of the program.
type run struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, errOut testlog.Log
	ended       chan struct{}
	err         error // of Wait
}

func startProgram(t *testing.T, dir string, in io.Reader, args ...string) *run {
	t.Helper()
	r := &run{t: t, cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), asProgram+"=1")
	r.cmd.Dir, r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = dir, in, &r.out, &r.errOut
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		r.err = r.cmd.Wait()
	}()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // has ended, if the test went well
	return r
}

// wait gives the exit code.
func (r *run) wait() int {
	r.t.Helper()
	select {
	case <-r.ended:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		r.t.Fatalf("the program does not end:\n%s", r.errOut.String())
		return 0
	}
}

// finished gives what a run printed that has to succeed.
func (r *run) finished() string {
	r.t.Helper()
	if code := r.wait(); code != 0 {
		r.t.Fatalf("exit code %d:\n%s", code, r.errOut.String())
	}
	return r.out.String()
}

// await waits for a text on standard error.
func (r *run) await(text string) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(r.errOut.String(), text) {
		select {
		case <-tick.C:
		case <-r.ended:
			r.t.Fatalf("the program ended (%v) without %q:\n%s", r.err, text, r.errOut.String())
		case <-deadline:
			r.t.Fatalf("no %q on standard error:\n%s", text, r.errOut.String())
		}
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestFilesAreCountedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "x y\nx\n"), write(t, filepath.Join(dir, "b"), "Y z\n")
	copied := write(t, filepath.Join(dir, "copy"), "Y z\n")
	count := func(args ...string) string {
		t.Helper()
		return startProgram(t, dir, nil, append([]string{"--data", filepath.Join(dir, "data"), "--all"}, args...)...).finished()
	}
	expect(t, count(a), "2\tx\n1\ty\n")
	expect(t, count(a, b, copied), "2\tx\n2\ty\n1\tz\n")
	expect(t, count("--repeat", "2", a), "4\tx\n3\ty\n1\tz\n")
	expect(t, count("--repeat", "1", "--guarantee", "exactly-once", b), "4\tx\n3\ty\n1\tz\n")
	write(t, a, "new x") // grown, without a last end of line
	expect(t, count(a), "5\tx\n3\ty\n1\tnew\n1\tz\n")
	expect(t, count(a), "5\tx\n3\ty\n1\tnew\n1\tz\n")
}

func TestStandardInput(t *testing.T) {
	t.Parallel()
	r := startProgram(t, t.TempDir(), strings.NewReader("b a\n\nA B c\nlast a"), "--all", "-")
	expect(t, r.finished(), "3\ta\n2\tb\n1\tc\n1\tlast\n")
	if s := r.errOut.String(); !strings.Contains(s, "standard input cannot be resumed") {
		t.Errorf("does not say that standard input cannot be resumed:\n%s", s)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, late := write(t, filepath.Join(dir, "file"), "one\ntwo unfin"), write(t, filepath.Join(dir, "late"), "")
	follow := func() *run {
		t.Helper()
		return startProgram(t, dir, nil, "--data", filepath.Join(dir, "data"), "--all", "--follow", "--progress", "20ms", file, late)
	}
	r := follow()
	r.await("lines@2 ") // one line and its transaction's marker, committed
	write(t, file, "ished\nthree\n")
	write(t, late, "one\n") // as the other file began
	r.await("produced 4/4")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	write(t, file, "four\n")
	r = follow()
	r.await("produced 5/5")
	write(t, file, "five five\n")
	r.await("produced 6/6")
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// What was not processed when the signal came is counted by a run that goes to the end.
	r.finished()
	r = startProgram(t, dir, nil, "--data", filepath.Join(dir, "data"), "--all", file, late)
	expect(t, r.finished(), "2\tfive\n2\tone\n1\tfour\n1\tthree\n1\ttwo\n1\tunfinished\n")
}

func TestOwnDocs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../README.md"); err != nil {
		t.Skip("no README.md to count")
	}
	r := startProgram(t, ".", nil, "--top", "3")
	if lines := strings.Count(r.finished(), "\n"); lines != 3 {
		t.Errorf("%d lines for --top 3:\n%s", lines, r.out.String())
	}
	data, ok := strings.CutPrefix(strings.Split(r.errOut.String(), "\n")[1], "data: ")
	if data, _, _ = strings.Cut(data, " "); !ok || data == "" {
		t.Fatalf("no temporary folder named:\n%s", r.errOut.String())
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder %s is still there: %v", data, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "x\n")
	blocked := write(t, filepath.Join(dir, "blocked"), "")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "not in Tidemark's source tree"},
		{[]string{"nowhere"}, 2, "nowhere: no such file"},
		{[]string{dir}, 2, "not a regular file"},
		{[]string{"--client", "sarama", file}, 2, "use franz or confluent"},
		{[]string{"--guarantee", "twice", file}, 2, "use at-least-once or exactly-once"},
		{[]string{"--top", "-1", file}, 2, "at least 1"},
		{[]string{"--top", "x", file}, 2, "wordcount: invalid value \"x\" for flag -top: parse error\nusage: wordcount [flags] [FILE...]\nIt explains itself"},
		{[]string{"--top", "1", "--all", file}, 2, "exclude each other"},
		{[]string{file, "--top", "1"}, 2, "flags go before the files"},
		{[]string{"--repeat", "0", file}, 2, "at least 1"},
		{[]string{"--repeat", "2", "--follow", file}, 2, "exclude each other"},
		{[]string{"--repeat", "2", "-"}, 2, "standard input is not"},
		{[]string{"--app", "a/b", file}, 2, "a/b"},
		{[]string{"--commit-interval", "-1s", file}, 2, "must not be negative"},
		{[]string{"--follow", "-"}, 2, "standard input ends by itself"},
		{[]string{"--data", blocked, file}, 1, "blocked"},
		{[]string{"--brokers", "127.0.0.1:1", file}, 1, "127.0.0.1:1"},
	} {
		r := startProgram(t, dir, nil, test.args...)
		if code := r.wait(); code != test.code || !strings.Contains(r.errOut.String(), test.want) || r.out.String() != "" {
			t.Errorf("%q: exit code %d, want %d with %q:\n%s%s", test.args, code, test.code, test.want, r.errOut.String(), r.out.String())
		}
	}
}

// A second program on the same data folder is told who uses it, and the first goes on.
func TestDataFolderInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "x y\n")
	first := startProgram(t, dir, nil, "--data", "data", "--all", "--follow", "--progress", "20ms", file)
	first.await("lines@2 ")
	_, addr, _ := strings.Cut(first.errOut.String(), "broker: embedded, ")
	addr, _, _ = strings.Cut(addr, ",")
	for _, args := range [][]string{nil, {"--brokers", addr}} {
		second := startProgram(t, dir, nil, append(args, "--data", "data", file)...)
		if code := second.wait(); code != 1 || !strings.Contains(second.errOut.String(), strconv.Itoa(first.cmd.Process.Pid)) && !strings.Contains(second.errOut.String(), "another program's broker") {
			t.Errorf("%q: exit code %d, want 1 and who uses the folder:\n%s", args, code, second.errOut.String())
		}
	}
	write(t, file, "x\n")
	first.await("produced 2/2")
	first.await("lines@4 ")
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.finished()
	expect(t, startProgram(t, dir, nil, "--data", "data", "--all", file).finished(), "2\tx\n1\ty\n")
}
