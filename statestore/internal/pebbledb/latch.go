package pebbledb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// ErrCorrupt marks an error that comes from damaged or missing files.
var ErrCorrupt = errors.New("database is corrupt")

// severity says what may still be done with a failed database.
type severity uint8

const (
	// broken: Pebble itself is sound, its files or its disk are not. Closing may work.
	broken severity = iota + 1
	// fatal: Pebble stopped in the middle of something, maybe with its locks held.
	fatal
)

// latch keeps the first failure.
type latch struct {
	closed chan struct{}
	failed atomic.Bool // what every read and write looks at: cheaper than the channel

	mu    sync.Mutex
	err   error
	level severity
}

func newLatch() *latch { return &latch{closed: make(chan struct{})} }

// fail closes the latch. It tells whether err is the first failure.
func (l *latch) fail(err error, level severity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = max(l.level, level)
	if l.err != nil {
		return false
	}
	l.err = err
	l.failed.Store(true)
	close(l.closed)
	return true
}

func (l *latch) state() (severity, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level, l.err
}

// fatalCall is what Fatalf panics with on a goroutine that must not be parked.
type fatalCall struct{ err error }

// guard runs fn and turns a panic into an error.
func guard(op string, fn func() error) (panicked bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			panicked, err = true, panicError(op, r)
		}
	}()
	return false, fn()
}

func panicError(op string, r any) error {
	switch r := r.(type) {
	case fatalCall:
		return fmt.Errorf("%s: %w", op, r.err)
	case error:
		return fmt.Errorf("%s: pebble panicked: %w", op, r)
	}
	return fmt.Errorf("%s: pebble panicked: %v", op, r)
}

// guardRead is guard for the caller's own goroutine, which must not be parked. (Reading
// takes no lock that a panic could upset.)
func guardRead(op string, fn func() error) (panicked bool, err error) { return guard(op, fn) }

// guardWalk is guardRead for a function that calls code which is not Pebble's, and says so
// while it does: a panic there goes on to whom it belongs, from the stack on which it arose.
func guardWalk(op string, fn func(outside *bool) error) (panicked bool, err error) {
	outside := false
	defer func() {
		if outside {
			return
		}
		if r := recover(); r != nil {
			panicked, err = true, panicError(op, r)
		}
	}()
	return false, fn(&outside)
}

// How the guards look in a stack.
const (
	guardName     = "statestore/internal/pebbledb.guard"
	guardReadName = guardName + "Read"
	guardWalkName = guardName + "Walk"
)

// reading tells whether the innermost guard on this goroutine's stack is that of a read: code
// that a walk calls may write.
func reading() bool {
	write := false
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, guardReadName), strings.HasSuffix(f.Function, guardWalkName):
			return true
		case write: // guard, and not called by guardRead
			return false
		case strings.HasSuffix(f.Function, guardName):
			write = true
		}
		if !more {
			return false
		}
	}
}

// logger is what a database logs to. Pebble's own would end the process.
type logger struct {
	log   *slog.Logger
	latch *latch
	info  func(format string, args []any)
}

// Infof is Pebble's running commentary: only for debugging.
func (l *logger) Infof(format string, args ...any) {
	if l.info != nil {
		l.info(format, args)
	}
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf logs: what matters also comes as an error or an event.
func (l *logger) Errorf(format string, args ...any) {
	l.log.Warn(fmt.Sprintf(format, args...))
}

// Fatalf must not return: Pebble is in the middle of something that it cannot finish. It
// parks the goroutine; a panic on its way out could meet an Unlock of an unlocked mutex,
// which ends the process. Only a reader gets a panic, and from guardRead an error.
func (l *logger) Fatalf(format string, args ...any) {
	err := mark(fmt.Errorf("pebble cannot go on: %s", fmt.Sprintf(format, args...)), args)
	if l.latch.fail(err, fatal) {
		l.log.Error("task store failed", "error", err)
	}
	if reading() {
		panic(fatalCall{err})
	}
	select {}
}

// mark joins ErrCorrupt to an error if one of Fatalf's arguments is a corruption.
func mark(err error, args []any) error {
	for _, a := range args {
		if cause, ok := a.(error); ok {
			if pebble.IsCorruptionError(cause) {
				return fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
			return fmt.Errorf("%w (%w)", err, cause)
		}
	}
	return err
}
