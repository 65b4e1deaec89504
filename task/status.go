package task

import (
	"slices"
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
	// Durable are those that are on the disk for certain: a crash of the machine takes the store back to them.
	Durable  map[string]statestore.Offset
	CommitID statestore.CommitID
	// Dropped counts records that were not processed because of their timestamp or an
	// operator's rule.
	Dropped int64
	// Restore is the progress of each store's restore; empty when none was needed.
	Restore []RestoreStatus
	// Replay is the progress of a replay for stores without a changelog.
	Replay ReplayStatus
	// Repaired are stores that did not fit their changelogs when the task was taken over.
	Repaired []Repair
	// Failed is why the task was closed while the others go on; nil if it was not. See [KeepOthers].
	Failed error
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

// statusBoard is what the worker's goroutine and those beside it write, and others read.
type statusBoard struct {
	processed atomic.Int64
	changed   func()

	mu     sync.Mutex
	s      Status
	stores map[processor.TaskID]*statestore.TaskStore // of the tasks in s that were brought to their start
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
		if store := w.status.stores[s.Tasks[i].ID]; store != nil {
			s.Tasks[i].Durable = store.DurableOffsets()
		}
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

// closed lets go of the stores too, whose caches would live as long as the status.
func (b *statusBoard) closed() { b.update(func(x *Status) { x.State, b.stores = "closed", nil }) }

func (b *statusBoard) task(id processor.TaskID, f func(*TaskStatus)) {
	b.update(func(s *Status) { f(s.task(id)) })
}

// opened says which store the task has, which is asked for what is durable.
func (b *statusBoard) opened(id processor.TaskID, store *statestore.TaskStore) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stores == nil {
		b.stores = map[processor.TaskID]*statestore.TaskStore{}
	}
	b.stores[id] = store
}

// failed lets go of the store of a task that was closed; what else is known of the task stays.
func (b *statusBoard) failed(id processor.TaskID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.stores, id)
}

func (b *statusBoard) forget(ids []processor.TaskID) {
	b.update(func(s *Status) {
		for _, id := range ids {
			delete(b.stores, id)
		}
		s.Tasks = slices.DeleteFunc(s.Tasks, func(t TaskStatus) bool { return slices.Contains(ids, t.ID) })
	})
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
