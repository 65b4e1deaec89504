package metrics

import (
	"time"

	"github.com/tidemark-streams/tidemark/task"
)

var (
	workers   = gauge("workers", "Workers of this process by state.", "state")
	processed = counter("worker_processed_records_total", "Records processed, also those processed again after a failed commit.", "worker")
	commits   = counter("worker_commits_total", "Commits that succeeded.", "worker")
	committed = counter("worker_commit_seconds_total", "How long the commits took together, from seal to applied. It runs beside processing.", "worker")

	tasks   = gauge("tasks", "Tasks of this process by state.", "state")
	dropped = counter("task_dropped_records_total", "Records that were not processed because of their timestamp or an operator's rule.", "task")
	gap     = gauge("task_unsynced_offsets", "How many changelog offsets the store has committed that are not on the disk for certain: what the crash of the machine would have it restore.", "task", "store")

	restored  = gauge("restore_records", "Records applied by the store's last restore.", "task", "store")
	remaining = gauge("restore_remaining_offsets", "Changelog offsets that the store has yet to restore; compaction and transactions leave holes, so the records may be fewer.", "task", "store")
	pace      = gauge("restore_records_per_second", "Pace of the store's restore; of the whole restore once it is finished.", "task", "store")
	expected  = gauge("restore_expected_end_timestamp_seconds", "When the store's restore will be over at its present pace, in seconds since 1970; left out while that is not known, and once it is over.", "task", "store")
	took      = gauge("restore_seconds", "How long the store's restore takes, or took.", "task", "store")
)

// States of workers and of tasks. A worker that was not run yet is new.
var (
	workerStates = []string{"new", "opening", "restoring", "running", "closing", "closed"}
	taskStates   = []string{"opening", "restoring", "replaying", "running", "failed", "closed"}
)

// stateOf is the task's own state: others of its worker may be elsewhere.
func stateOf(w task.Status, t task.TaskStatus) string {
	switch {
	case t.Failed != nil:
		return "failed"
	case w.State == "closed":
		return "closed"
	}
	for _, r := range t.Restore {
		if r.Took == 0 {
			return "restoring"
		}
	}
	switch {
	case !t.Replay.Started.IsZero() && t.Replay.Took == 0:
		return "replaying"
	case t.Committed != nil: // since it was brought to its start
		return "running"
	}
	return "opening"
}

func (c collection) workers(all []task.Status) {
	inState, taskIn := map[string]int64{}, map[string]int64{}
	for _, w := range all {
		state := w.State
		if state == "" {
			state = "new"
		}
		inState[state]++
		c.count(processed, w.Processed, w.Name)
		c.count(commits, w.Commits, w.Name)
		c.add(committed, w.CommitTime.Seconds(), w.Name)
		for _, t := range w.Tasks {
			taskIn[stateOf(w, t)]++
			c.task(t)
		}
	}
	for _, s := range workerStates {
		c.count(workers, inState[s], s)
	}
	for _, s := range taskStates {
		c.count(tasks, taskIn[s], s)
	}
}

func (c collection) task(t task.TaskStatus) {
	id := t.ID.String()
	c.count(dropped, t.Dropped, id)
	for store, offset := range t.Changelog {
		next, ok := offset.Next()
		if !ok || t.Durable == nil {
			continue
		}
		durable, _ := t.Durable[store].Next() // none: nothing of it is
		c.count(gap, max(0, next-durable), id, store)
	}
	for _, r := range t.Restore {
		c.count(restored, r.Records, id, r.Store)
		if !r.ExpectedEnd.IsZero() {
			c.add(expected, float64(r.ExpectedEnd.UnixMilli())/1000, id, r.Store)
		}
		c.count(remaining, r.Remaining(), id, r.Store)
		c.add(pace, r.Rate, id, r.Store)
		spent := r.Took
		if spent == 0 && !r.Started.IsZero() {
			spent = time.Since(r.Started)
		}
		c.add(took, spent.Seconds(), id, r.Store)
	}
}
