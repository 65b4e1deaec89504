package pebbledb

import (
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB is a database that wants to compact.
type fakeDB struct {
	s *scheduler

	mu      sync.Mutex
	waiting int
	running []pebble.CompactionGrantHandle
	peak    int
	granted chan struct{}
}

func newFake(l *limiter) *fakeDB {
	f := &fakeDB{s: &scheduler{l: l}, granted: make(chan struct{}, 100)}
	f.s.Register(2, f)
	return f
}

func (f *fakeDB) GetAllowedWithoutPermission() int { return 1 }

func (f *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting > 0, pebble.WaitingCompaction{}
}

func (f *fakeDB) Schedule(g pebble.CompactionGrantHandle) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		return false
	}
	f.waiting--
	f.start(g)
	return true
}

func (f *fakeDB) start(g pebble.CompactionGrantHandle) {
	f.running = append(f.running, g)
	f.peak = max(f.peak, len(f.running))
	f.granted <- struct{}{}
}

// want asks for a compaction as Pebble does, with its lock held.
func (f *fakeDB) want() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok, g := f.s.TrySchedule(); ok {
		f.start(g)
		return
	}
	f.waiting++
}

func (f *fakeDB) finish() {
	f.mu.Lock()
	g := f.running[0]
	f.running = f.running[1:]
	f.mu.Unlock()
	g.Done()
}

func (f *fakeDB) wantGranted(t *testing.T, within time.Duration) bool {
	t.Helper()
	select {
	case <-f.granted:
		return true
	case <-time.After(within):
		return false
	}
}

func TestLimiter(t *testing.T) {
	l := &limiter{max: 1}
	a, b := newFake(l), newFake(l)
	a.want()
	b.want()
	a.want()
	if !a.wantGranted(t, time.Second) {
		t.Fatal("the first was not granted")
	}
	if b.wantGranted(t, 20*time.Millisecond) {
		t.Fatal("two run where one may")
	}
	a.finish()
	if !b.wantGranted(t, 5*time.Second) {
		t.Fatal("the slot was not offered to the one who waits")
	}
	b.finish()
	if !a.wantGranted(t, 5*time.Second) {
		t.Fatal("the slot was not offered to the one who waited next")
	}
	a.finish()
	l.offers.Wait()
	if l.running != 0 {
		t.Errorf("%d slots are still held", l.running)
	}
}

func TestLimiterTakesSlotsOfTheAbandoned(t *testing.T) {
	l := &limiter{max: 1}
	a, b := newFake(l), newFake(l)
	a.want()
	b.want()
	a.s.abandon()
	if !b.wantGranted(t, 5*time.Second) {
		t.Fatal("the slot of the abandoned database is lost")
	}
	a.finish() // late: must not count twice
	b.s.Unregister()
	if ok, _ := b.s.TrySchedule(); ok {
		t.Error("an unregistered database was granted a slot")
	}
	b.finish()
	l.offers.Wait()
	if l.running != 0 {
		t.Errorf("%d slots are held", l.running)
	}
}

// TestLimiterIsClosedBeforeTheLastSlotReturns: Pebble's Close does not wait for the goroutine of a
// compaction to give its slot back.
func TestLimiterIsClosedBeforeTheLastSlotReturns(t *testing.T) {
	l := &limiter{max: 1}
	a, b := newFake(l), newFake(l)
	a.want()
	b.want() // is refused
	a.s.Unregister()
	b.s.Unregister()
	l.close()
	a.finish()
	l.offers.Wait()
	if l.running != 0 {
		t.Errorf("%d slots are held", l.running)
	}
	if len(l.refused) != 1 {
		t.Error("an offer was made after the limiter was closed")
	}
}

func TestManyDatabasesShareTheSlots(t *testing.T) {
	l := &limiter{max: 2}
	var dbs []*fakeDB
	for range 8 {
		dbs = append(dbs, newFake(l))
	}
	var wg sync.WaitGroup
	for _, f := range dbs {
		wg.Go(func() {
			for range 50 {
				f.want()
			}
		})
		wg.Go(func() {
			for range 50 {
				if !f.wantGranted(t, 20*time.Second) {
					t.Error("starved")
					return
				}
				f.finish()
			}
		})
	}
	wg.Wait()
	l.offers.Wait()
	if l.running != 0 {
		t.Errorf("%d slots are held at the end", l.running)
	}
	for _, f := range dbs {
		if f.peak > 1 {
			t.Errorf("a database ran %d compactions; it allows 1", f.peak)
		}
	}
}
