package task

import (
	"runtime/debug"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

// RestoreStatus is the progress of one store's restore.
type RestoreStatus struct {
	Store     string
	Changelog kafka.TopicPartition
	// From and End are offsets: restored is [From, Next) of [From, End).
	From, Next, End int64
	// Records counts those applied; offsets have holes.
	Records int64
	// Rate is in records per second, of the last seconds; of the whole restore once it is finished.
	Rate float64
	// ExpectedEnd is when the restore will be finished at the present pace; zero while that is not
	// known, and once it is.
	ExpectedEnd time.Time
	Started     time.Time
	Took        time.Duration // once it is finished
}

// Remaining is how many offsets are to be restored yet. Offsets have holes, so the records may be fewer.
func (s *RestoreStatus) Remaining() int64 { return max(0, s.End-s.Next) }

// RestoreEvent is what happens to the restore of a store.
type RestoreEvent uint8

const (
	// RestoreStarted: the first record is about to be read.
	RestoreStarted RestoreEvent = iota
	// RestoreProgress: there is news of the progress; at most once a second.
	RestoreProgress
	// RestoreEnded: the store holds what its changelog held.
	RestoreEnded
	// RestoreSuspended: the worker is being stopped, has lost its place or begins anew. What was
	// restored stays, and the next restore goes on from there.
	RestoreSuspended
)

var restoreEvents = [...]string{"started", "progress", "ended", "suspended"}

// String names the event.
func (e RestoreEvent) String() string { return restoreEvents[e] }

// RestoreListener is told of restores, from the goroutine that restores: it must not block. Several
// goroutines may call it at once, for different tasks.
type RestoreListener func(id processor.TaskID, e RestoreEvent, s RestoreStatus)

func (w *Worker) tellRestore(t *Task, e RestoreEvent, s *storePlan) {
	f := w.cfg.RestoreListener
	if f == nil {
		return
	}
	defer func() { // it is user code, and of no account for the restore
		if p := recover(); p != nil {
			w.log.Error("restore listener: panic", "task", t.id.String(), "store", s.name, "event", e.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f(t.id, e, s.status)
}

// paceTime is how often the pace of a restore is looked at.
const paceTime = time.Second

// pace measures how fast a restore is.
type pace struct {
	at            time.Time
	next, records int64   // then
	offsets       float64 // per second
}

func (p *pace) begin(s *RestoreStatus) { *p = pace{at: time.Now(), next: s.Next, records: s.Records} }

// look brings rate and expected end up to date when it is time, and tells whether it was. The
// latest second counts for half, so that both follow a change soon, and do not jump.
func (p *pace) look(s *RestoreStatus) bool {
	now := time.Now()
	d := now.Sub(p.at)
	if d < paceTime {
		return false
	}
	first := p.offsets == 0
	rate, offsets := float64(s.Records-p.records)/d.Seconds(), float64(s.Next-p.next)/d.Seconds()
	if !first {
		rate, offsets = (rate+s.Rate)/2, (offsets+p.offsets)/2
	}
	p.at, p.next, p.records, p.offsets, s.Rate = now, s.Next, s.Records, offsets, rate
	s.ExpectedEnd = time.Time{}
	if offsets > 0 {
		s.ExpectedEnd = now.Add(time.Duration(float64(s.Remaining()) / offsets * float64(time.Second)))
	}
	return true
}

// end makes the rate that of the whole restore.
func (p *pace) end(s *RestoreStatus) {
	s.ExpectedEnd = time.Time{}
	if s.Took > 0 {
		s.Rate = float64(s.Records) / s.Took.Seconds()
	}
}

func (r *restoration) report(x *restoring) {
	r.w.status.task(x.task.id, func(s *TaskStatus) {
		for i := range s.Restore {
			if s.Restore[i].Store == x.store.name {
				s.Restore[i] = x.store.status
				return
			}
		}
		s.Restore = append(s.Restore, x.store.status)
	})
}

// tellTime is how often the log tells of restores that take long.
const tellTime = 5 * time.Second

func (r *restoration) tell() {
	now := time.Now()
	if now.Sub(r.told) < tellTime {
		return
	}
	r.told = now
	for tp, x := range r.active {
		s := &x.store.status
		x.pace.look(s) // one that nothing comes for is slow
		left := "unknown"
		if !s.ExpectedEnd.IsZero() {
			left = s.ExpectedEnd.Sub(now).Round(time.Second).String()
		}
		r.w.log.Info("restoring", "task", x.task.id.String(), "store", s.Store, "changelog", tp.String(), "next", s.Next, "end", s.End,
			"remaining", s.Remaining(), "records", s.Records, "records_per_second", int64(s.Rate), "expected_in", left)
	}
	if n := len(r.waiting); n > 0 {
		r.w.log.Info("restoring", "stores_waiting", n)
	}
}
