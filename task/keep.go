package task

import (
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

// keepCopy has a copy of the task's directory made before a store is emptied that may hold what is nowhere else; it makes
// what is done known.
func (w *Worker) keepCopy(t *Task, s *storePlan) error {
	r := Repair{Store: s.name, Changelog: s.tp, Reason: s.why, Action: "emptied, and restored from the changelog"}
	if s.keep {
		copied, err := w.copyBefore(t, s.name, s.why)
		if err != nil {
			return err
		}
		r.Action += copied
	}
	w.status.task(t.id, func(x *TaskStatus) { x.repaired(r) })
	return nil
}

// copyBefore makes the copy, if the store has data and there is no copy yet, and says where, for the text of a [Repair].
func (w *Worker) copyBefore(t *Task, store, why string) (copied string, err error) {
	if w.cfg.Keep == nil || !holdsRows(t.store, store) {
		return "", nil
	}
	path, made, err := w.cfg.Keep(t.id, t.store, fmt.Sprintf("Store %s was emptied: %s.", store, why))
	if err != nil {
		return "", fmt.Errorf("store %s is to be emptied, since %s; before that %w", store, why, err)
	}
	if !made {
		w.log.Warn("no copy of the task's directory is made, since there is one", "task", t.id.String(), "copy", path)
		return "", nil
	}
	w.log.Warn("a copy of the task's directory is kept", "task", t.id.String(), "copy", path)
	return "; a copy is in " + path, nil
}

// holdsRows tells whether a store has data on the disk.
func holdsRows(store *statestore.TaskStore, name string) bool {
	states, err := store.Stores()
	if err != nil {
		return true // the clearing will say so
	}
	for _, s := range states {
		if s.Spec.Name == name {
			return !s.Empty && !s.Spec.InMemory
		}
	}
	return false
}

// repaired adds a repair. Readers keep the slice that they have.
func (x *TaskStatus) repaired(r Repair) {
	x.Repaired = append(x.Repaired[:len(x.Repaired):len(x.Repaired)], r)
}

// seeds adds a repair, or brings the one up to date that says that the store is being written.
func (x *TaskStatus) seeds(r Repair) {
	all := slices.Clone(x.Repaired)
	for i := range all {
		if s := &all[i]; s.Store == r.Store && s.Action == beingSeeded {
			s.Action, s.Records = r.Action, r.Records
			x.Repaired = all
			return
		}
	}
	x.Repaired = append(all, r)
}
