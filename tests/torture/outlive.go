package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// halted waits until a process is stopped at its point, with a transaction open. The point may not come; then it is killed, the
// next run of it is stopped at a random moment, and it is counted as one that has missed its point.
func (w *world) halted(ctx context.Context, name string, p *process) error {
	patience := 10 * time.Second
	if w.o.steps != nil {
		patience = 60 * time.Second
	}
	met, err := until(ctx, patience, func() (bool, error) {
		if !p.alive() {
			return false, p.verdict()
		}
		return p.halts(), nil
	})
	if err != nil {
		return err
	}
	if !met {
		return w.haltAnother(name, p)
	}
	w.paused[name] = true
	p.signal(syscall.SIGSTOP)
	open, err := w.ongoing(ctx, name)
	if err == nil && open == 0 {
		w.missed = append(w.missed, p.name+" "+p.point)
	}
	return err
}

// haltAnother puts a process without a point in the place of one that has not come to its own: that might stop itself later, when
// nobody is there to let it go on.
func (w *world) haltAnother(name string, p *process) error {
	w.missed = append(w.missed, p.name+" "+p.point)
	if err := p.kill(); err != nil {
		return err
	}
	if err := w.start(step{"start", name, "20ms"}); err != nil {
		return err
	}
	w.paused[name] = true
	w.procs[name].signal(syscall.SIGSTOP)
	return nil
}

// expired waits until the broker has ended the transactions of a process that cannot do so itself.
func (w *world) expired(ctx context.Context, name string) error {
	over, err := until(ctx, patience, func() (bool, error) {
		open, err := w.ongoing(ctx, name)
		return open == 0, err
	})
	if err == nil && !over {
		err = errors.New("the broker has not ended its transactions")
	}
	return err
}

// ongoing counts the transactions of a process that are open, or being ended.
func (w *world) ongoing(ctx context.Context, name string) (open int, err error) {
	ids, err := w.transactionalIDs(name)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	all, err := w.adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return 0, err
	}
	for _, t := range all {
		switch {
		case errors.Is(t.Err, kerr.TransactionalIDNotFound): // it was not used
		case t.Err != nil:
			return 0, fmt.Errorf("describe the transaction of %s: %w", t.TxnID, t.Err)
		case t.State == "Ongoing", t.State == "PrepareAbort", t.State == "PrepareCommit", t.State == "PrepareEpochFence":
			open++
		}
	}
	return open, nil
}

// halts tells whether all of the process is stopped, as Linux tells it.
func (p *process) halts() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

// until asks until the answer is yes, or for as long as that may take.
func until(ctx context.Context, most time.Duration, done func() (bool, error)) (bool, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(most); ; {
		if yes, err := done(); yes || err != nil {
			return yes, err
		}
		if time.Now().After(end) {
			return false, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
