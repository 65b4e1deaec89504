package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// openStore opens a task's store. A damaged directory is set aside, see package localstate.
func (r *rounds) openStore(id processor.TaskID) (*statestore.TaskStore, error) {
	return r.leases.Open(id.String(), func() (*statestore.TaskStore, error) { return r.openDir(id) })
}

// storeClosed follows openStore when the worker has closed the store.
func (r *rounds) storeClosed(id processor.TaskID, err error) { r.leases.Closed(id.String(), err) }

// keep copies a task's directory, by links, before one of its stores is emptied.
func (r *rounds) keep(id processor.TaskID, store *statestore.TaskStore, reason string) (path string, made bool, err error) {
	return r.dir.Keep(id.String(), reason, store.Snapshot)
}
