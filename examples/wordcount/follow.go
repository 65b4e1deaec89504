package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// lookInterval is how often a followed file is looked at.
const lookInterval = 200 * time.Millisecond

// follow produces the files' whole lines, and those that are appended, until ctx ends: then
// it returns ctx's error.
func (p *producer) follow(ctx context.Context, sources []source) error {
	var inputs []*input
	defer func() {
		for _, in := range inputs {
			in.close()
		}
	}()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		var unborn []source
		for _, s := range sources {
			in, err := p.startFollowing(ctx, s)
			if err != nil {
				return err
			}
			switch {
			case in != nil:
				inputs = append(inputs, in)
			case s.path != stdin:
				unborn = append(unborn, s) // it has no whole line yet
			}
		}
		sources = unborn
		for _, in := range inputs {
			if err := p.drain(ctx, in); err != nil {
				return err
			}
			if err := in.check(); err != nil {
				return err
			}
		}
		// Not in the next look: an open transaction keeps its lines from being counted.
		if err := p.commit(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startFollowing opens a file that has a whole line by now; nil: it has not, or it is
// standard input, which is over when this returns.
func (p *producer) startFollowing(ctx context.Context, s source) (*input, error) {
	if s.path == stdin {
		return nil, p.produceStdin(ctx, s)
	}
	if s.end == 0 {
		var err error
		if s, err = openSource(s.path, p.known, true); err != nil || s.end == 0 {
			return nil, err
		}
		p.total.Add(s.lines)
	}
	u := unit{content: s.content}
	if p.next(u) > s.lines+1 {
		return nil, fmt.Errorf("%s: its last line was counted without its end by an earlier run; end the line and count the file in another data folder to follow it", s.path)
	}
	in, err := openInput(s, u)
	if err != nil {
		return nil, err
	}
	in.lines = newLineReader(in.file)
	return in, nil
}

// check finds a file that became shorter: its lines have lost their numbers.
func (in *input) check() error {
	info, err := in.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", in.path, err)
	}
	read, err := in.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("%s: %w", in.path, err)
	}
	if info.Size() < read {
		return fmt.Errorf("%s was cut from %d to %d bytes: it cannot be followed any more", in.path, read, info.Size())
	}
	return nil
}
