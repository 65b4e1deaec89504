package task

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Status is a snapshot of a worker.
type Status struct {
	Name string
	// State is opening, restoring, running, closing or closed; empty before Run.
	State string
	// Processed counts records since the start, also those that were processed again after a
	// failed commit.
	Processed int64
	Commits   int64
	// CommitTime is how long the commits took together, from seal to applied.
	CommitTime time.Duration
	Tasks      []TaskStatus
}

// TaskStatus is a snapshot of a task.
type TaskStatus struct {
	ID processor.TaskID
	// Found is what the store held when it was opened.
	Found Found
	// Committed are the source offsets of the last commit.
	Committed map[kafka.TopicPartition]int64
	// Changelog are the changelog offsets in the store, by store.
	Changelog map[string]statestore.Offset
	CommitID  statestore.CommitID
	// Dropped counts records that were not processed because of their timestamp or an
	// operator's rule.
	Dropped int64
	// Restore is the progress of each store's restore; empty when none was needed.
	Restore []RestoreStatus
}

// Found is what a take-over met.
type Found struct {
	// Existing is false for a store that was empty.
	Existing  bool
	CommitID  statestore.CommitID
	Changelog map[string]statestore.Offset
	// Positions are where processing starts: the group's offsets.
	Positions map[kafka.TopicPartition]int64
	// WALBytes is how much of the database's log was replayed at open; 0 after a clean close.
	WALBytes int64
}

// RestoreStatus is the progress of one store's restore.
type RestoreStatus struct {
	Store     string
	Changelog kafka.TopicPartition
	// From and End are offsets: restored is [From, Next) of [From, End).
	From, Next, End int64
	// Records counts those applied; offsets have holes.
	Records int64
	Started time.Time
	Took    time.Duration // once it is finished
}

// statusBoard is what the worker's goroutine writes and others read.
type statusBoard struct {
	processed atomic.Int64
	changed   func()

	mu sync.Mutex
	s  Status
}

// Status gives the present snapshot. Anyone may call it.
func (w *Worker) Status() Status {
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	s := w.status.s
	s.Name = w.cfg.Name
	s.Processed = w.status.processed.Load()
	s.Tasks = append([]TaskStatus(nil), s.Tasks...)
	for i := range s.Tasks {
		s.Tasks[i].Restore = append([]RestoreStatus(nil), s.Tasks[i].Restore...)
	}
	return s
}

// State is that of [Worker.Status], which copies more. Anyone may call it.
func (w *Worker) State() string {
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	return w.status.s.State
}

func (b *statusBoard) update(f func(*Status)) {
	b.mu.Lock()
	f(&b.s)
	b.mu.Unlock()
	if b.changed != nil {
		b.changed()
	}
}

func (b *statusBoard) state(s string) { b.update(func(x *Status) { x.State = s }) }

func (b *statusBoard) closed() { b.update(func(x *Status) { x.State = "closed" }) }

func (b *statusBoard) task(id processor.TaskID, f func(*TaskStatus)) {
	b.update(func(s *Status) { f(s.task(id)) })
}

func (s *Status) task(id processor.TaskID) *TaskStatus {
	for i := range s.Tasks {
		if s.Tasks[i].ID == id {
			return &s.Tasks[i]
		}
	}
	s.Tasks = append(s.Tasks, TaskStatus{ID: id})
	return &s.Tasks[len(s.Tasks)-1]
}

// committed publishes a commit that succeeded, of all its tasks at once: who is told looks at
// all of them. The maps are made anew: readers keep theirs.
func (b *statusBoard) committed(res commitResult) {
	b.update(func(s *Status) {
		s.Commits++
		s.CommitTime += res.took
		for _, t := range res.interval.tasks {
			x := s.task(t.task.id)
			x.Committed = map[kafka.TopicPartition]int64{}
			for _, o := range t.offsets {
				x.Committed[o.TopicPartition] = o.Offset
			}
			x.Changelog, x.CommitID, x.Dropped = t.task.store.CommittedOffsets(), t.progress.ID, t.task.dropped
		}
	})
}
