package main

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
)

// told is a life that began at second 100 and said these things, at milliseconds after it.
func told(notes ...note) lived {
	start := time.Unix(100, 0)
	for i := range notes {
		notes[i].At = start.Add(time.Duration(notes[i].At) * time.Millisecond).UnixNano()
	}
	return lived{start, notes}
}

// evenly is a life that processes so many records a millisecond, from a time on.
func evenly(from, to, perMS int64) []note {
	var n []note
	for at := from; at <= to; at += 20 {
		n = append(n, note{At: at, Processed: (at - from) * perMS})
	}
	return n
}

// TestFirstCommit: the commit of a take-over, which has no record, is not the one.
func TestFirstCommit(t *testing.T) {
	l := told(note{At: 10, Event: watch.Committed}, note{At: 20, Processed: 5}, note{At: 150, Event: watch.Committed, Processed: 70, Restored: 3}, note{At: 260, Event: watch.Committed, Processed: 90})
	if ms, n := l.firstCommit(); ms != 150 || n.Restored != 3 {
		t.Errorf("first commit at %v ms, restored %d", ms, n.Restored)
	}
	if ms, _ := told(note{At: 10, Event: watch.Committed}).firstCommit(); ms != -1 {
		t.Errorf("there was none, and it came at %v ms", ms)
	}
	if n := l.interval(); n != 70 {
		t.Errorf("largest interval %d, want 70", n)
	}
}

// TestRates: the rate before is that of the second half; afterwards it is reached when work begins.
func TestRates(t *testing.T) {
	before := told(append(evenly(0, 1000, 1), note{At: 1500, Processed: 1000}, note{At: 1750, Processed: 2000}, note{At: 2000, Processed: 3000})...)
	if r := before.steady(); r != 4000 {
		t.Errorf("rate %v, want 4000 in the last quarter of a second", r)
	}
	after := told(append([]note{{At: 100}, {At: 300}}, evenly(400, 1000, 10)...)...)
	if at := after.reaches(7000); at != 400 {
		t.Errorf("7000 records/s from %v ms on, want 400", at)
	}
	if at := after.reaches(20000); at != -1 {
		t.Errorf("20000 records/s from %v ms on, and it never was as fast", at)
	}
}

func TestUnion(t *testing.T) {
	for _, x := range []struct{ a, b, c, d, want float64 }{
		{0, 10, 20, 25, 15},
		{0, 10, 5, 25, 25},
		{0, 30, 5, 25, 30},
		{20, 25, 0, 10, 15},
	} {
		if got := union(x.a, x.b, x.c, x.d); got != x.want {
			t.Errorf("union of %v-%v and %v-%v is %v, want %v", x.a, x.b, x.c, x.d, got, x.want)
		}
	}
}
