package watch

import (
	"slices"
	"sync/atomic"
	"time"
)

// Gaps are the times between two records of a worker that were the longest of each commit:
// from the end of one transaction to the end of the next, in which lie one seal, and the
// end of one commit. Time in Poll is not part of a gap, for then there was nothing to do.
type Gaps struct {
	client  *Client
	commits atomic.Int64
	every   time.Duration // see ByTime
	from    time.Time

	seen    int64 // commits, at the record before
	at      time.Time
	polled  time.Duration
	longest time.Duration
	all     []time.Duration
}

// NewGaps measures with a client, whose On it takes.
func NewGaps(client *Client) *Gaps {
	g := &Gaps{client: client}
	client.On = func(e Event) {
		if e == Committed {
			g.commits.Add(1)
		}
	}
	return g
}

// ByTime ends a gap's window after so long, and not with a commit; a window in which there was one
// does not count. What is left are the gaps that the machine makes by itself: other threads that
// want the processor, and the garbage collector.
func (g *Gaps) ByTime(every time.Duration) { g.every = every }

// Record notes a record. It is called on the worker's goroutine.
func (g *Gaps) Record() {
	now, polled := time.Now(), g.client.Polled()
	if !g.at.IsZero() {
		g.longest = max(g.longest, now.Sub(g.at)-(polled-g.polled))
	}
	g.at, g.polled = now, polled
	if g.every > 0 {
		g.endWindow(now)
		return
	}
	if n := g.commits.Load(); n != g.seen {
		if g.seen > 0 { // the first is not a whole interval
			g.all = append(g.all, g.longest)
		}
		g.seen, g.longest = n, 0
	}
}

func (g *Gaps) endWindow(now time.Time) {
	if now.Sub(g.from) < g.every {
		return
	}
	n := g.commits.Load()
	if !g.from.IsZero() && n == g.seen {
		g.all = append(g.all, g.longest)
	}
	g.from, g.seen, g.longest = now, n, 0
}

// All gives the gaps so far, the shortest first. It is called when the application has ended.
func (g *Gaps) All() []time.Duration {
	slices.Sort(g.all)
	return g.all
}

// Quantile is the q-th of sorted durations, 0 if there are none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
