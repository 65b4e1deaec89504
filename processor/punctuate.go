package processor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// schedule holds an instance's punctuations. There are few: a list serves.
type schedule struct {
	entries []*punctuation // in the order of scheduling
	// streamDue is the earliest point by stream time, in milliseconds, which every record is
	// compared with.
	streamDue int64
	hasStream bool
}

type punctuation struct {
	node      string
	interval  int64 // milliseconds, as all times here: a Duration spans 292 years only
	by        PunctuationType
	next      int64
	f         Punctuator
	cancelled bool
}

// add registers a punctuation whose first point is start.
func (s *schedule) add(node string, interval time.Duration, by PunctuationType, start int64, f Punctuator) func() {
	p := &punctuation{node: node, interval: max(interval.Milliseconds(), 1), by: by, next: start, f: f}
	if by == WallClockTime {
		p.next += p.interval
	}
	s.entries = append(s.entries, p)
	s.refresh()
	return func() {
		p.cancelled = true
		s.refresh()
	}
}

// refresh forgets what was cancelled and looks for the next point by stream time.
func (s *schedule) refresh() {
	s.entries = slices.DeleteFunc(s.entries, func(p *punctuation) bool { return p.cancelled })
	s.streamDue, s.hasStream = s.earliest(StreamTime)
}

func (s *schedule) earliest(by PunctuationType) (at int64, ok bool) {
	for _, p := range s.entries {
		if p.by == by && !p.cancelled && (!ok || p.next < at) {
			at, ok = p.next, true
		}
	}
	return at, ok
}

// run calls what is due, the earliest point first. What a punctuator schedules waits for the
// next run: one that replaces itself by stream time, whose first point is always past, would
// never end.
func (s *schedule) run(by PunctuationType, now time.Time, at func(node string)) error {
	ms := now.UnixMilli()
	var due []*punctuation
	for _, p := range s.entries {
		if p.by == by && !p.cancelled && p.next <= ms {
			due = append(due, p)
		}
	}
	slices.SortStableFunc(due, func(a, b *punctuation) int { return cmp.Compare(a.next, b.next) })
	for _, p := range due {
		if p.cancelled { // by one before it
			continue
		}
		at(p.node)
		if err := p.f(now); err != nil {
			return fmt.Errorf("punctuate processor %s: %w", p.node, err)
		}
		step := p.interval - (ms-p.next)%p.interval // from now to the next point
		if step > math.MaxInt64-ms {
			p.cancelled = true // it would be behind the end of time
			continue
		}
		p.next = ms + step
	}
	s.refresh()
	return nil
}
