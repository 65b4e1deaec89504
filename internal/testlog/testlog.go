package testlog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Log keeps what is written to it: by a logger, or by a process as its output. The zero value is an empty one. It is safe for
// concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text. It never fails, and keeps nothing of b.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String gives what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count gives the number of lines that have all of these texts in them.
func (l *Log) Count(texts ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
		}
	}
	return n
}

// Logger gives a logger that writes to the log: a line for each record, from INFO on.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
