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
// group does not know. The host hears only of assignments, with some protocols not even of empty ones; so it tells what is usual, not what is.
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
		case h.place.assigned.Load() || h.byHand.Load() || h.open.Err() != nil || h.well.Err() != nil:
			return
		case h.consumer.Subscribed == nil || !h.consumer.Subscribed():
			begun = time.Now() // it waits for its user
		case time.Since(begun) >= silence:
			what := "its first partitions: most often a member has ended and the group waits until its session, or the rebalance that it was in, times out; " +
				"or other members have all of them, the topic does not exist, no broker answers, or nothing polls"
			if h.place.answered.Load() {
				what = "its first partitions: the group has none left. If a member that has them has ended, until its session is over; if they run, this process stands by"
			}
			h.log.Info("waiting for a place in the group", "group", h.consumer.Group, "for", what)
			return
		}
	}
}
