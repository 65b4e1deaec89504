package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// maxOther is the share of a CPU that others may use during a run.
	maxOther = 0.10
	// quietFor is how long the machine must be quiet before a run begins.
	quietFor = time.Second
	// quietWait bounds the waiting for it; then the run begins all the same.
	quietWait = 5 * time.Minute
	// jiffy is the unit of the times in /proc.
	jiffy = 10 * time.Millisecond
)

// usage is CPU time spent: by the whole machine, and by the broker.
type usage struct{ all, broker time.Duration }

func (u usage) since(v usage) usage { return usage{u.all - v.all, u.broker - v.broker} }

// look reads the CPU times; they are zero where the system does not tell them.
func look(brokerPID int) (u usage) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(first)[1:] {
		switch i {
		case 0, 1, 2, 5, 6: // user, nice, system, irq, softirq
			u.all += ticks(field)
		}
	}
	if brokerPID == 0 {
		return u
	}
	process, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", brokerPID))
	if err != nil {
		return u
	}
	// The name in brackets may contain blanks.
	fields := strings.Fields(string(process[strings.LastIndexByte(string(process), ')')+1:]))
	u.broker = ticks(fields[11]) + ticks(fields[12])
	return u
}

func ticks(field string) time.Duration {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * jiffy
}

// awaitQuiet waits until nothing but perhaps the broker works, for a moment. The broker
// deletes the topics of the run before, and may take its time.
func awaitQuiet(ctx context.Context, brokerPID int) error {
	ctx, cancel := context.WithTimeout(ctx, quietWait)
	defer cancel()
	for {
		before := look(brokerPID)
		select {
		case <-time.After(quietFor):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return ctx.Err()
		}
		if spent := look(brokerPID).since(before); spent.all.Seconds() < 2*maxOther*quietFor.Seconds() {
			return nil
		}
	}
}
