package streams

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// OnTaskFailure says what the failure of one task means for the others.
type OnTaskFailure = task.OnFailure

const (
	// StopApp ends the application when a task fails, after the others have committed.
	StopApp = task.StopApp
	// KeepOthers closes the task that fails and goes on with the others, whose results do not differ: what the task
	// had not committed is dropped, and its records wait for the next start.
	KeepOthers = task.KeepOthers
)

// taskFailures are those of a round. Any goroutine may use it.
type taskFailures struct {
	total int           // tasks of the round
	all   chan struct{} // closed when each has failed

	mu   sync.Mutex
	errs map[processor.TaskID]error
}

func newTaskFailures(total int) *taskFailures {
	return &taskFailures{total: total, all: make(chan struct{}), errs: map[processor.TaskID]error{}}
}

func (f *taskFailures) add(id processor.TaskID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, again := f.errs[id]
	f.errs[id] = err
	if !again && len(f.errs) == f.total {
		close(f.all)
	}
}

// err is the failures together, by task; nil if there are none.
func (f *taskFailures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, id := range slices.SortedFunc(maps.Keys(f.errs), processor.TaskID.Compare) {
		errs = append(errs, f.errs[id])
	}
	return errors.Join(errs...)
}

// taskFailed is told by a worker of a task that has failed alone.
func (r *rounds) taskFailed(id processor.TaskID, err error) {
	if l := r.app.cfg.TaskFailureListener; l != nil {
		l(id, err)
	}
	r.failures.add(id, err)
	r.app.notify()
}

// failedSources gives the partitions of tasks that have failed here: nobody will commit them.
func (a *App) failedSources() map[kafka.TopicPartition]bool {
	a.mu.Lock()
	workers := a.workers
	a.mu.Unlock()
	sources := map[kafka.TopicPartition]bool{}
	for _, w := range workers {
		for _, s := range w.Status().Tasks {
			if s.Failed == nil {
				continue
			}
			for _, name := range a.topology.Subtopologies()[s.ID.Subtopology].Sources {
				sources[kafka.TopicPartition{Topic: task.RealTopic(a.topology, a.cfg.AppID, name), Partition: s.ID.Partition}] = true
			}
		}
	}
	return sources
}
