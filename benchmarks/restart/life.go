package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
)

// lived is one life of the application: what it said from its start to its death.
type lived struct {
	start time.Time
	notes []note
}

// lifetime bounds one life.
const lifetime = 10 * time.Minute

// life starts the application and kills it when it has processed so many records.
func life(ctx context.Context, args []string, until int64) (l lived, err error) {
	ctx, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return l, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return l, fmt.Errorf("open pipe: %w", err)
	}
	l.start = time.Now()
	if err := cmd.Start(); err != nil {
		return l, fmt.Errorf("start the application: %w", err)
	}
	in := bufio.NewScanner(lines)
	killed := false
	for in.Scan() {
		var n note
		if err := json.Unmarshal(in.Bytes(), &n); err != nil {
			break // the last line of a killed process
		}
		l.notes = append(l.notes, n)
		if n.Processed >= until && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return l, fmt.Errorf("kill the application: %w", err)
			}
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return l, errors.Join(ctx.Err(), err)
	case !killed:
		return l, errors.Join(errors.New("the application ended by itself"), err)
	}
	return l, nil
}

// first is when an event came first, in milliseconds from the start; -1 if it never came.
func (l lived) first(e watch.Event) float64 {
	for _, n := range l.notes {
		if n.Event == e {
			return l.ms(n.At)
		}
	}
	return -1
}

func (l lived) ms(at int64) float64 { return float64(at-l.start.UnixNano()) / 1e6 }

// firstCommit is the first commit with a record of this life: a take-over may commit nothing but
// its own progress.
func (l lived) firstCommit() (ms float64, n note) {
	for _, n := range l.notes {
		if n.Event == watch.Committed && n.Processed > 0 {
			return l.ms(n.At), n
		}
	}
	return -1, n
}

// rateOver is the time over which a rate is taken.
const rateOver = 200 * time.Millisecond

// rate is the number of records in a second, over rateOver from note i on; 0 if the life did
// not last as long.
func (l lived) rate(i int) float64 {
	for _, n := range l.notes[i:] {
		if d := time.Duration(n.At - l.notes[i].At); d >= rateOver {
			return float64(n.Processed-l.notes[i].Processed) / d.Seconds()
		}
	}
	return 0
}

// steady is the rate over the last half of the records.
func (l lived) steady() float64 {
	last := l.notes[len(l.notes)-1]
	for _, n := range l.notes {
		if n.Processed >= last.Processed/2 && last.At > n.At {
			return float64(last.Processed-n.Processed) / time.Duration(last.At-n.At).Seconds()
		}
	}
	return 0
}

// reaches is when the rate is first that high, in milliseconds from the start; -1 if it never is.
func (l lived) reaches(rate float64) float64 {
	for i, n := range l.notes {
		if l.rate(i) >= rate {
			return l.ms(n.At)
		}
	}
	return -1
}

// interval is the largest number of records between two commits.
func (l lived) interval() int64 {
	var largest, before int64
	for _, n := range l.notes {
		if n.Event == watch.Committed {
			largest, before = max(largest, n.Processed-before), n.Processed
		}
	}
	return largest
}
