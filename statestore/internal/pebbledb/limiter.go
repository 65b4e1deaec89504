package pebbledb

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// limiter bounds the compactions of all databases that share it. Pebble's own scheduler
// has a ticker for each database, which costs an idle process with a thousand of them 7 %
// of a CPU; here a slot that becomes free is offered to who was refused one.
type limiter struct {
	max int

	mu      sync.Mutex
	running int
	refused []*scheduler // in the order of refusal, each at most once
	closed  bool         // no offer begins
	offers  sync.WaitGroup
}

// scheduler is one database's share of the limiter (pebble.CompactionScheduler).
type scheduler struct {
	l  *limiter
	db pebble.DBForCompaction

	// Under l.mu.
	running int  // slots held
	waiting bool // in l.refused
	gone    bool // unregistered or abandoned
	opening bool // nothing is granted, see opened
	wanted  bool // asked while opening

	// calls counts the limiter's calls into the database. It goes up under l.mu, and not
	// when gone is set.
	calls sync.WaitGroup
}

// Register is called once by a database that opened.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister waits until no call into the database is running; none follows.
func (s *scheduler) Unregister() {
	s.l.mu.Lock()
	s.gone = true
	s.l.mu.Unlock()
	s.calls.Wait()
}

// TrySchedule asks for a slot. The database holds its own lock; the limiter's comes after.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.gone {
		return false, nil
	}
	if s.opening {
		s.wanted = true
		return false, nil
	}
	if s.running >= s.db.GetAllowedWithoutPermission() || s.l.running >= s.l.max {
		s.l.remember(s)
		return false, nil
	}
	s.running++
	s.l.running++
	return true, &grant{s: s}
}

// UpdateGetAllowedWithoutPermission says that the database may have more work now.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.opening {
		s.wanted = true
	} else if !s.gone && s.l.running < s.l.max {
		s.l.remember(s)
		s.l.offerSoon()
	}
}

// opened is called when the database is open. Before, a compaction could outlive an Open
// that fails, which does not wait for it, and with that the caches that it uses.
func (s *scheduler) opened() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.opening = false
	if s.wanted && !s.gone {
		s.l.remember(s)
		s.l.offerSoon()
	}
}

// abandon gives back the slots of a database that will never do so itself.
func (s *scheduler) abandon() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.gone = true
	s.l.running -= s.running
	s.running = 0
	s.l.offerSoon()
}

func (l *limiter) remember(s *scheduler) {
	if !s.waiting {
		s.waiting = true
		l.refused = append(l.refused, s)
	}
}

// offerSoon is called with l.mu held. The offer is made on another goroutine, because the
// databases' locks come before the limiter's.
func (l *limiter) offerSoon() {
	if len(l.refused) > 0 && !l.closed {
		l.offers.Go(l.offer)
	}
}

// close returns when no offer is running; none follows. A database gives its last slot back
// only after it stopped counting the compaction, so that this can come after its close.
func (l *limiter) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.offers.Wait()
}

// offer gives the free slots to those who were refused, in turn.
func (l *limiter) offer() {
	for {
		l.mu.Lock()
		if len(l.refused) == 0 || l.running >= l.max {
			l.mu.Unlock()
			return
		}
		s := l.refused[0]
		l.refused = append(l.refused[:0], l.refused[1:]...)
		s.waiting = false
		if s.gone || s.running >= s.db.GetAllowedWithoutPermission() {
			l.mu.Unlock()
			continue
		}
		s.running++
		l.running++
		s.calls.Add(1)
		l.mu.Unlock()
		g := &grant{s: s}
		accepted := s.db.Schedule(g)
		s.calls.Done()
		l.mu.Lock()
		if accepted {
			l.remember(s) // it may have more; when not, it declines the next time
		} else {
			g.returnSlot()
		}
		l.mu.Unlock()
	}
}

// grant is one slot, held by one compaction.
type grant struct {
	s    *scheduler
	done bool // under l.mu
}

// Started implements pebble.CompactionGrantHandle.
func (g *grant) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (g *grant) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (g *grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done returns the slot. The database itself is offered one too: it may be waiting, and
// have been passed over because it ran as many as it allows.
func (g *grant) Done() {
	g.s.l.mu.Lock()
	defer g.s.l.mu.Unlock()
	g.returnSlot()
	if !g.s.gone {
		g.s.l.remember(g.s)
	}
	g.s.l.offerSoon()
}

func (g *grant) returnSlot() {
	if g.done || g.s.running == 0 { // given back by abandon
		return
	}
	g.done = true
	g.s.running--
	g.s.l.running--
}
