package embedded

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/tidemark-streams/tidemark/processor"
)

// strict is the debug mode of a task: it finds a use of the task, or of a store that it gave, outside the call of the function
// it was given to. Whoever is wrong is on any goroutine at any time, so what it looks at is atomic.
type strict struct {
	call    atomic.Uint64 // number of the last call
	running atomic.Bool   // it has not returned
	gid     atomic.Uint64 // its goroutine

	opened *processor.Stores // in this call; only its goroutine gets here
}

var (
	errReturned  = errors.New("its Process has returned: use a task, and the stores that it gives, only in the function given to Process")
	errGoroutine = errors.New("used on another goroutine: use a task, and the stores that it gives, only on the one that called Process")
	errEarlier   = errors.New("it was opened in an earlier Process: open a store again in each, with its handle's In")
)

func (s *strict) begin() {
	s.opened = nil
	s.gid.Store(goroutine())
	s.call.Add(1)
	s.running.Store(true)
}

func (s *strict) end() { s.running.Store(false) }

// stores gives those of the task for the call under way.
func (s *strict) stores(all *processor.Stores) *processor.Stores {
	if s.opened == nil {
		call := s.call.Load()
		s.opened = all.Guarded(func() error { return s.check(call) })
	}
	return s.opened
}

// check tells what is wrong with a use, here and now, of what belongs to a call.
func (s *strict) check(call uint64) error {
	if !s.running.Load() {
		return errReturned
	}
	if gid := s.gid.Load(); gid != 0 && gid != goroutine() && !pulls(gid) {
		return errGoroutine
	}
	if s.call.Load() != call {
		return errEarlier
	}
	return nil
}

// goroutine gives the number of the calling goroutine.
func goroutine() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseUint(string(digits), 10, 64) // 0, which checks nothing, if the form should change
	return n
}

// pulls tells whether this is the coroutine of an iter.Pull of that goroutine: it has a number of its own, and runs only while
// the other waits for it.
func pulls(gid uint64) bool {
	buf := make([]byte, 1<<16) // ample: a trace leaves out the middle of a deep stack
	trace := buf[:runtime.Stack(buf, false)]
	i := bytes.LastIndex(trace, []byte("\ncreated by iter.Pull"))
	if i < 0 {
		return false
	}
	line, _, _ := bytes.Cut(trace[i+1:], []byte("\n"))
	return bytes.HasSuffix(line, []byte(" in goroutine "+strconv.FormatUint(gid, 10)))
}
