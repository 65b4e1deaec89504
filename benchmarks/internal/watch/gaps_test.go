package watch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestGapsPerCommit: the longest gap of each commit counts, without the time in polls and without
// what came before the first commit.
func TestGapsPerCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		g := NewGaps(c)
		after := func(d time.Duration) {
			<-time.After(d)
			g.Record()
		}
		after(0)
		after(90 * time.Millisecond)
		c.On(Committed)
		after(time.Millisecond) // ends the first interval
		after(4 * time.Millisecond)
		after(2 * time.Millisecond)
		c.polled.Add(int64(50 * time.Millisecond))
		after(51 * time.Millisecond) // 1 ms beside the poll
		c.On(Fenced)
		c.On(Committed)
		after(3 * time.Millisecond)
		after(time.Millisecond)
		c.On(Committed)
		after(2 * time.Millisecond)
		if want := []time.Duration{2 * time.Millisecond, 4 * time.Millisecond}; !slices.Equal(g.All(), want) {
			t.Errorf("gaps %v, want %v", g.All(), want)
		}
	})
}

// TestGapsByTime: windows end after a time, and those with a commit in them do not count.
func TestGapsByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{}
		g := NewGaps(c)
		g.ByTime(10 * time.Millisecond)
		after := func(ms ...int) {
			for _, n := range ms {
				<-time.After(time.Duration(n) * time.Millisecond)
				g.Record()
			}
		}
		after(0, 6, 4)
		after(7)
		c.On(Committed)
		after(3)
		after(5, 5)
		if want := []time.Duration{5 * time.Millisecond, 6 * time.Millisecond}; !slices.Equal(g.All(), want) {
			t.Errorf("gaps %v, want %v", g.All(), want)
		}
	})
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	if Quantile(d, 0.99) != 0 {
		t.Error("a quantile of nothing")
	}
	for i := range 100 {
		d = append(d, time.Duration(i+1))
	}
	if p50, p99, most := Quantile(d, 0.5), Quantile(d, 0.99), Quantile(d, 1); p50 != 51 || p99 != 100 || most != 100 {
		t.Errorf("%d %d %d", p50, p99, most)
	}
}
