package crash

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds one run of the program; it is never reached when all is well.
const patience = 2 * time.Minute

// process is one run of the program.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at every line
	ended chan struct{}
	err   error // of Wait
}

// start starts the program. It is killed at the test's end at the latest.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), more: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		scan := bufio.NewScanner(stderr)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, scan.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it fails when the program has ended, as it should have
		<-p.ended
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// kill kills the program, and tells whether that is what ended it.
func (p *process) kill() bool {
	p.signal(syscall.SIGKILL)
	return p.killed()
}

// killed waits for the end, and tells whether it was SIGKILL.
func (p *process) killed() bool {
	p.t.Helper()
	p.wait()
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// wait waits for the end and gives the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		p.signal(syscall.SIGQUIT) // the goroutines' stacks come to standard error
		<-p.ended
		p.t.Fatalf("the program did not end within %v:\n%s", patience, p.text())
		return 0
	}
}

// endedWithin waits for the end for a while, and tells whether it came.
func (p *process) endedWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// await waits until a line of standard error fits, and tells whether one came before the end.
func (p *process) await(fits func(line string) bool) bool {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	seen := 0
	for {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for ; seen < len(lines); seen++ {
			if fits(lines[seen]) {
				return true
			}
		}
		select {
		case <-more:
			continue
		default:
		}
		select {
		case <-more:
		case <-p.ended:
			p.mu.Lock()
			all := len(p.lines)
			p.mu.Unlock()
			if seen == all {
				return false
			}
		case <-timer.C:
			p.t.Fatalf("waited %v for a line of the program:\n%s", patience, p.text())
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// progress is a progress line.
type progress struct {
	state                      string
	records, produced, of, log int64
}

var progressLine = regexp.MustCompile(`^(\w+) +([\d,]+) records, [\d,]+/s; lines produced ([\d,]+)/([\d,]+); committed .*; changelog @([\d,]+)$`)

func parseProgress(line string) (p progress, ok bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return p, false
	}
	return progress{m[1], number(m[2]), number(m[3]), number(m[4]), number(m[5])}, true
}

// isProcessing: records were processed in this run.
func isProcessing(line string) bool {
	p, ok := parseProgress(line)
	return ok && p.state == "running" && p.records > 0
}

// hasCommitted gives a condition that holds when the changelog has grown in this run.
func hasCommitted() func(line string) bool {
	first := int64(-1)
	return func(line string) bool {
		p, ok := parseProgress(line)
		if !ok || p.state != "running" {
			return false
		}
		if first < 0 {
			first = p.log
		}
		return p.log > first
	}
}

// any tells whether a line of standard error fits.
func (p *process) any(fits func(line string) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.lines, fits)
}

// last gives the last progress line.
func (p *process) last() (last progress, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if x, fits := parseProgress(line); fits {
			last, ok = x, true
		}
	}
	return last, ok
}

// found gives the first number behind a prefix of a line.
func (p *process) found(prefix string) int64 {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return number(regexp.MustCompile(`[\d,]*\d`).FindString(rest))
		}
	}
	p.t.Fatalf("no line begins with %q:\n%s", prefix, strings.Join(p.lines, "\n"))
	return 0
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	return n
}
