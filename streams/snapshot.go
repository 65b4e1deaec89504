package streams

import (
	"context"
	"fmt"

	"github.com/tidemark-streams/tidemark/internal/localstate"
)

// Snapshot puts a snapshot of each task store that is open in this process below dir, as AppID/<task>, while the tasks go
// on: what tidemark inspect, verify and dump read. Each is the state after one commit of its task, data and offsets
// together; several tasks may be at different commits, and one that is being restored stands within its changelogs. Stores
// in memory, and those that the program keeps itself, are not in it. On the file system of StateDir the table files are
// hard links, so it takes little time and space; elsewhere files are copied, and whoever closes a task (a rebalance does)
// waits until its copy is through.
//
// dir must be empty or not exist, and lie outside of StateDir. An error names the tasks of which there is no snapshot;
// every other one is whole. When ctx ends no further task is begun. It may be called by anyone while Run runs; in a process
// that runs no task it is an error.
func (a *App) Snapshot(ctx context.Context, dir string) error {
	a.mu.Lock()
	leases := a.leases
	a.mu.Unlock()
	err := localstate.ErrNothingOpen
	if leases != nil {
		err = leases.Snapshot(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("snapshot to %s: %w", dir, err)
	}
	return nil
}
