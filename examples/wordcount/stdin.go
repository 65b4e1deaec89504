package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// stdinLine is a line of standard input, or how it ended.
type stdinLine struct {
	text []byte // nil: none
	err  error
}

// readStdin reads in a goroutine of its own, which ends with the input, with ctx, or with the
// program: the read of a terminal cannot be interrupted.
func readStdin(ctx context.Context) <-chan stdinLine {
	out := make(chan stdinLine)
	go func() {
		lines := newLineReader(os.Stdin)
		for {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				line = lines.rest()
			}
			select {
			case out <- stdinLine{bytes.Clone(line), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// produceStdin produces standard input, about which the next run can know nothing.
func (p *producer) produceStdin(ctx context.Context, s source) error {
	p.place.show.printf("standard input cannot be resumed: after a kill its committed lines stay counted, and the next run counts its own input besides")
	p.once = true
	in, err := openInput(s, unit{content: s.content})
	if err != nil {
		return err
	}
	lines := readStdin(ctx)
	tick := time.NewTicker(transactionTime)
	defer tick.Stop()
	for {
		select {
		case l := <-lines:
			if l.text != nil {
				if err := p.take(ctx, in, l.text); err != nil {
					return err
				}
			}
			if errors.Is(l.err, io.EOF) {
				return p.commit(ctx)
			} else if l.err != nil {
				return fmt.Errorf("standard input, line %d: %w", in.number+1, l.err)
			}
		case <-tick.C: // whoever types slowly wants to see it counted
			if p.old() {
				if err := p.commit(ctx); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
