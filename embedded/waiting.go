package embedded

import (
	"sync/atomic"
	"time"
)

// place is what the group has told this member so far.
type place struct {
	answered atomic.Bool // it has assigned something, or that there is nothing
	assigned atomic.Bool // partitions, ever
}

// heard keeps an assignment of the group's.
func (p *place) heard(partitions int) {
	p.answered.Store(true)
	if partitions > 0 {
		p.assigned.Store(true)
	}
}

// silence is how long a host waits for its first partitions without a word.
const silence = 5 * time.Second

// tellWaiting says once that the group has given no partition yet: most often because of a process that has ended, of which the
// group does not know.
func (h *Host) tellWaiting() {
	begun := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.open.Done():
			return
		case <-h.well.Done():
			return
		}
		switch {
		case h.place.assigned.Load() || h.byHand.Load() || h.open.Err() != nil:
			return
		case h.consumer.Subscribed == nil || !h.consumer.Subscribed():
			begun = time.Now() // it waits for its user
		case time.Since(begun) >= silence:
			what := "the group's answer: it waits for members that have ended, until their sessions are over"
			if h.place.answered.Load() {
				what = "the members that have the partitions, of which none is left: if one has ended, until its session is over; if they run, this process stands by"
			}
			h.log.Info("waiting for a place in the group", "group", h.consumer.Group, "for", what)
			return
		}
	}
}
