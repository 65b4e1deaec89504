package task

import (
	"fmt"
	"runtime/debug"
)

// flush has tables with caching send on what they hold back. It comes before the seal: the updates,
// and what they cause, are in the commit of the records that caused them, and nothing is held back
// across a commit.
func (t *Task) flush() (err error) {
	if t.inst == nil {
		return nil
	}
	const doing = "send what tables hold back"
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Task: t.id, Err: fmt.Errorf("%s: node %s: panic: %v\n%s", doing, t.inst.At(), p, debug.Stack())}
		}
	}()
	if err := t.inst.Flush(); err != nil {
		return &Error{Task: t.id, Err: fmt.Errorf("%s: %w", doing, err)}
	}
	return nil
}
