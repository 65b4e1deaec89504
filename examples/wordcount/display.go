package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"
)

// display shows what goes on: lines that stay, and one line of progress below them, which a
// terminal shows in place and everything else as a line of its own.
type display struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    int
	progress string // shown at present; on a terminal only
	last     string // the last plain progress line: one that says nothing new is left out
}

func newDisplay(f *os.File) *display {
	d := &display{w: f, terminal: term.IsTerminal(int(f.Fd()))}
	if d.terminal {
		d.width, _, _ = term.GetSize(int(f.Fd())) // 0: not known, not cut
	}
	return d
}

// printf prints a line that stays.
func (d *display) printf(format string, a ...any) {
	_, _ = d.Write([]byte(fmt.Sprintf(format, a...) + "\n"))
}

// Write prints lines that stay, such as those of a logger.
func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	n, err := d.w.Write(b)
	d.draw()
	return n, err
}

// update shows progress.
func (d *display) update(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.terminal {
		if line != d.last {
			d.last = line
			fmt.Fprintln(d.w, line)
		}
		return
	}
	if d.width > 0 && len(line) >= d.width { // a line that is wrapped cannot be erased
		line = line[:d.width-1]
	}
	d.erase()
	d.progress = line
	d.draw()
}

func (d *display) erase() {
	if d.progress != "" {
		fmt.Fprint(d.w, "\r\x1b[K")
	}
}

func (d *display) draw() { fmt.Fprint(d.w, d.progress) }

// close lets the last progress stand, and goes to a new line.
func (d *display) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.progress != "" {
		fmt.Fprintln(d.w)
		d.progress = ""
	}
}

// logger gives a logger that prints here: warnings and errors, or everything.
func (d *display) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: level}))
}

// grouped writes a number with a comma after each three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && s[i-1] != '-' && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
