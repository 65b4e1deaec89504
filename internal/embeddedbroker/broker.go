package embeddedbroker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options says where the broker lives. Only Dir is needed.
type Options struct {
	// Dir holds the log and everything else of the broker. It is created with mode
	// 0700 when absent; what an earlier broker left there is served again.
	Dir string
	// Port of the address; 0 is the one that the folder had last, when it is free, and
	// any free one otherwise.
	Port int
	// Advertised is the address that clients are told to connect to, host:port, for what forwards
	// connections to the broker; empty is the broker's own.
	Advertised string
	// Config sets broker configurations such as "message.max.bytes". kfake knows some
	// of Kafka's, and refuses the others by ignoring them.
	Config map[string]string
	// CloseTimeout bounds Close, after which the child is killed; 0 is 30 seconds. A
	// new child waits as long for one that is still closing.
	CloseTimeout time.Duration

	// How long a folder that looks in use may stay so. The child of a killed program
	// needs a moment to see its input end.
	patience time.Duration
}

const (
	defaultCloseTimeout = 30 * time.Second
	defaultPatience     = 2 * time.Second
	logFile             = "broker.log"
)

// Broker is a running child.
type Broker struct {
	addr    string
	unclean bool
	dir     string
	cmd     *exec.Cmd
	stdin   io.Closer
	timeout time.Duration

	logStart int64 // where this child's part of the log file begins
	exited   chan struct{}
	exitErr  error // valid after exited is closed

	closing  sync.Once
	closeErr error
}

// Start starts a broker and returns when it answers. The context bounds the start
// only. The errors name the folder, the process that has it open if there is one, and
// the end of what the child wrote to its log.
func Start(ctx context.Context, o Options) (*Broker, error) {
	b, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start embedded broker in %s: %w", o.Dir, err)
	}
	return b, nil
}

func start(ctx context.Context, o Options) (*Broker, error) {
	if os.Getenv(childVariable) != "" {
		return nil, errors.New("this process is the broker's child: call embeddedbroker.Main first in main")
	}
	if o.Dir == "" {
		return nil, errors.New("no folder given")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	b := &Broker{dir: o.Dir, timeout: orDefault(o.CloseTimeout, defaultCloseTimeout), exited: make(chan struct{})}
	if b.cmd, err = command(o, b.timeout); err != nil {
		return nil, err
	}
	hello, err := b.launch()
	if err != nil {
		return nil, err
	}
	select {
	case h := <-hello:
		if h.Error != "" {
			_ = b.stop() // the child ends by itself, and has said why
			return nil, errors.New(h.Error)
		}
		b.addr, b.unclean = h.Addr, h.Unclean
		return b, nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), b.Close())
	}
}

func command(o Options, closeTimeout time.Duration) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file, to start it again: %w", err)
	}
	order, err := json.Marshal(order{
		Dir: o.Dir, Port: o.Port, Advertised: o.Advertised, Config: o.Config,
		Patience: orDefault(o.patience, defaultPatience), CloseTimeout: closeTimeout,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{exe, "embedded-broker", o.Dir} // for the reader of a process list
	cmd.Env = append(os.Environ(), childVariable+"="+string(order))
	cmd.SysProcAttr = ownProcessGroup()
	return cmd, nil
}

// launch starts the child and the goroutine that waits for its end. The channel gets
// the child's first line, or an error in its place when it ends without one.
func (b *Broker) launch() (<-chan hello, error) {
	// To a file and not to the parent's standard error: a child that closes after its
	// parent's end would otherwise keep open a pipe that somebody reads to its end.
	log, err := os.OpenFile(filepath.Join(b.dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	if info, err := log.Stat(); err == nil {
		b.logStart = info.Size()
	}
	b.cmd.Stderr = log
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, b.stdin.Close())
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan hello, 1)
	go func() {
		defer close(b.exited)
		line, _ := bufio.NewReader(stdout).ReadBytes('\n')
		var h hello
		if err := json.Unmarshal(line, &h); err != nil || h == (hello{}) {
			h.Error = "the child ended without a word (does main call embeddedbroker.Main first?)" + b.logTail()
		}
		said <- h
		_, _ = io.Copy(io.Discard, stdout) // Wait must come after the last read
		b.exitErr = b.cmd.Wait()
	}()
	return said, nil
}

// Addr returns the broker's address, host:port.
func (b *Broker) Addr() string { return b.addr }

// PID returns the child's process id.
func (b *Broker) PID() int { return b.cmd.Process.Pid }

// Unclean reports whether the folder's last broker was itself killed, or could not
// write everything: then transactions in the log may be torn, and no state that was
// built from it can be trusted.
func (b *Broker) Unclean() bool { return b.unclean }

// Exited returns a channel that is closed when the child has ended, by Close or by
// itself.
func (b *Broker) Exited() <-chan struct{} { return b.exited }

// Close ends the child and returns when it is gone. An error means that the log may not
// be complete: the child had failed before, could not write, or was killed because it
// did not close in time. Further calls return what the first one did.
func (b *Broker) Close() error {
	b.closing.Do(func() {
		if err := b.stop(); err != nil {
			b.closeErr = fmt.Errorf("close embedded broker in %s: %w%s", b.dir, err, b.logTail())
		}
	})
	return b.closeErr
}

func (b *Broker) stop() error {
	_ = b.stdin.Close() // it fails when the child is gone already, which the exit tells
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	select {
	case <-b.exited:
		return b.exitErr
	case <-timer.C:
		_ = b.cmd.Process.Kill() // it fails when the child is gone after all
		<-b.exited
		return fmt.Errorf("not closed after %s, killed: its transactions may be torn", b.timeout)
	}
}

// logTail returns the end of what this child wrote to its log file, for an error.
func (b *Broker) logTail() string {
	f, err := os.Open(filepath.Join(b.dir, logFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	const most = 2000
	from := max(b.logStart, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil || len(text) == 0 {
		return ""
	}
	return fmt.Sprintf("; the end of %s: %s", f.Name(), strings.TrimSpace(string(text)))
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
