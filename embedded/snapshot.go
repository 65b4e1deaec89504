package embedded

import (
	"context"
	"fmt"
)

// Snapshot puts a snapshot of each task store that is open in this host below dir, as App/<task>, while the loop goes
// on: what tidemark inspect, verify and dump read. Each is the state after one commit of its task, data and offsets
// together; several tasks may be at different commits, and one that is being restored stands within its changelogs. Stores
// in memory, and those that the program keeps itself, are not in it. On the file system of StateDir the table files are
// hard links, so it takes little time and space; elsewhere files are copied, and a revoke waits until the copy of its task
// is through.
//
// dir must be empty or not exist, and lie outside of StateDir. An error names the tasks of which there is no snapshot;
// every other one is whole. When ctx ends no further task is begun. It may be called by anyone, also in the function given to
// Process; while no partition is assigned it is an error.
func (h *Host) Snapshot(ctx context.Context, dir string) error {
	if err := h.leases.Snapshot(ctx, dir); err != nil {
		return fmt.Errorf("snapshot to %s: %w", dir, err)
	}
	return nil
}
