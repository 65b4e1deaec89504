package statedir

import (
	"fmt"
	"sync"
)

// Cleaner is the user of the leases that [Dir.Clean] takes, for moments.
const Cleaner = "the cleaner"

// Lease is the right of one part of the process to use a task's directory: the cleaner, a
// worker and a tool never have the same one. It is a token, not a lock of a goroutine.
type Lease struct {
	d    *Dir
	task string
	once sync.Once
}

// Lease gives the right to use a task's directory to user, a word for messages. It does not
// wait: when somebody has it, the error says who.
func (d *Dir) Lease(taskID, user string) (*Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil, fmt.Errorf("lease task %s: state directory %s is closed", taskID, d.path)
	}
	if holder, ok := d.leases[taskID]; ok {
		return nil, fmt.Errorf("lease task %s of %s for %s: %w", taskID, d.path, user, &LeasedError{Holder: holder})
	}
	if d.leases == nil {
		d.leases = map[string]string{}
	}
	d.leases[taskID] = user
	return &Lease{d: d, task: taskID}, nil
}

// LeasedError says who has the lease.
type LeasedError struct{ Holder string }

func (e *LeasedError) Error() string { return e.Holder + " has it" }

// Release gives the lease back. Calling it again does nothing.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		delete(l.d.leases, l.task)
	})
}
