package filelock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Holder says who holds, or last held, a lock.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"`           // when the holder took the lock
	State string    `json:"state,omitempty"` // the owner's own word, see [Lock.SetState]
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "a process that has not written its name yet"
	}
	return fmt.Sprintf("process %d on %s (since %s)", h.PID, h.Host, h.Start.Format(time.RFC3339))
}

// HeldError is the error of [Take] when another process, or another Take of this
// one, holds the lock.
type HeldError struct {
	Path   string
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is locked by %s", e.Path, e.Holder)
}

// Lock is a held lock. It is released by [Lock.Close] or by the end of the process.
type Lock struct {
	f        *os.File
	holder   Holder
	previous Holder
}

// Take takes the lock on the file at path, creating the file (mode 0600) when it is
// absent, and writes the caller's process id, host, start time and state into it. It
// does not wait: when the lock is held the error is a [*HeldError].
func Take(path, state string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	l, err := take(f, state)
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return l, nil
}

func take(f *os.File, state string) (*Lock, error) {
	if err := flock(f); err != nil {
		if errors.Is(err, errHeld) {
			return nil, &HeldError{Path: f.Name(), Holder: readSettled(f)}
		}
		return nil, fmt.Errorf("lock %s: %w (does its file system support flock?)", f.Name(), err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	l := &Lock{f: f, holder: Holder{PID: os.Getpid(), Host: host, Start: time.Now().UTC().Truncate(time.Second)}}
	l.previous, _ = read(f)
	if err := l.SetState(state); err != nil {
		return nil, err
	}
	return l, nil
}

// Previous returns what the last holder left in the file; zero when there was none or
// when its text cannot be read.
func (l *Lock) Previous() Holder { return l.previous }

// SetState writes the owner's word into the file, where the next holder and a process
// that finds the lock held can read it. It is not synced: the word tells one living
// process about another.
func (l *Lock) SetState(state string) error {
	l.holder.State = state
	text, err := json.Marshal(l.holder)
	if err != nil {
		return fmt.Errorf("write lock file %s: %w", l.f.Name(), err)
	}
	text = append(text, '\n')
	if _, err := l.f.WriteAt(text, 0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	// Cut only after writing, so that a reader never finds the file empty.
	if err := l.f.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}

// Close releases the lock. The file stays.
func (l *Lock) Close() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// readSettled reads the holder's text, and waits a moment for a holder that took the
// lock just now and has not written it yet.
func readSettled(f *os.File) Holder {
	for range 20 {
		if h, ok := read(f); ok {
			return h
		}
		time.Sleep(5 * time.Millisecond)
	}
	return Holder{}
}

func read(f *os.File) (Holder, bool) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil {
		return Holder{}, false
	}
	var h Holder
	if err := json.Unmarshal(text, &h); err != nil || h.PID <= 0 {
		return Holder{}, false
	}
	return h, true
}
