package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

// process is one run of the application.
type process struct {
	name, point string
	cmd         *exec.Cmd
	stdin       io.WriteCloser
	log         string
	ended       chan struct{}
	err         error // of Wait, once ended
	// mayDie: it was killed, or has a point at which it kills itself.
	mayDie bool
	// stopping: it was told to end, which may come before it listens.
	stopping bool
	// fails is the error of its disk that may end it, once it was told to have one.
	fails error
}

// startProcess starts this program's binary as the application. Its log is appended to a file.
func startProcess(o appOrder, point, log string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the child has its own copy
	p := &process{name: o.Name, point: point, cmd: exec.Command(exe), log: log, ended: make(chan struct{}), mayDie: point != "" && !strings.HasSuffix(point, ":stop")}
	p.cmd.Args = []string{exe, "torture-app", o.Name} // for the reader of a process list
	p.cmd.Env = append(os.Environ(), appVariable+"="+string(order), failpoint.Env+"="+point)
	p.cmd.Stderr = file
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ended by the process
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal of a process that ended by itself is no error: whoever looks at its end finds the cause.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// stop asks for a clean end.
func (p *process) stop() {
	p.stopping = true
	p.signal(syscall.SIGTERM)
}

// order changes the state of its disk. One that has ended does not hear it.
func (p *process) order(text string) error {
	for name, err := range diskErrors {
		if strings.HasPrefix(text, name) {
			p.fails = err
		}
	}
	if _, err := fmt.Fprintln(p.stdin, text); err != nil && p.alive() {
		return fmt.Errorf("order for the disk of run %s: %w", p.name, err)
	}
	return nil
}

func (p *process) kill() error {
	p.mayDie = true
	p.signal(syscall.SIGKILL)
	return p.await(10 * time.Second)
}

// await waits for the end.
func (p *process) await(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.verdict()
	case <-timer.C:
		p.signal(syscall.SIGQUIT) // the goroutines' stacks come to its log
		return fmt.Errorf("run %s did not end within %v: see %s", p.name, d, p.log)
	}
}

// verdict tells whether an end was right: a clean one, the kill that was meant for it, or an error that
// names the trouble of its disk.
func (p *process) verdict() error {
	if p.err == nil {
		return nil
	}
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		if s.Signal() == syscall.SIGKILL && p.mayDie || s.Signal() == syscall.SIGTERM && p.stopping {
			return nil
		}
	}
	text, _ := os.ReadFile(p.log) // without it the error says less
	last := text[bytes.LastIndexByte(bytes.TrimSpace(text), '\n')+1:]
	if at := bytes.LastIndex(text, []byte("FAILED: ")); at >= 0 && p.cmd.ProcessState.ExitCode() == 1 {
		last = text[at:] // it may have several lines
	}
	if p.fails != nil && bytes.HasPrefix(last, []byte("FAILED: ")) && bytes.Contains(last, []byte(p.fails.Error())) {
		return nil // it said what is wrong
	}
	return fmt.Errorf("run %s ended by itself (%w): %s", p.name, p.err, bytes.TrimSpace(last))
}
