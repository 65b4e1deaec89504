package statestore

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/internal/fdlimit"
)

const (
	// descriptorsPerStore is what an open database holds beside its table files: lock,
	// manifest, log and directories.
	descriptorsPerStore = 8
	// otherDescriptors is a share for everything else in the process: connections, listeners,
	// log files.
	otherDescriptors = 256
)

// CheckFileDescriptors tells, before they are opened, whether the process may have as many
// files open as that many task stores need: an error gives the number and how to raise the
// limit. Without it, the task that is opened when the limit is reached would be the one to
// fail, and connections with it.
func (r *Resources) CheckFileDescriptors(tasks int) error {
	limit, ok := fdlimit.Get()
	if !ok {
		return nil
	}
	return checkDescriptors(tasks, r.r.OpenFiles(), limit)
}

func checkDescriptors(tasks, tables int, limit uint64) error {
	needed := uint64(tasks)*descriptorsPerStore + uint64(tables) + otherDescriptors
	if needed <= limit {
		return nil
	}
	return fmt.Errorf("too few file descriptors: %d are needed (%d for each of %d task stores, %d for their table files, %d for all else), and this process may have %d; "+
		"raise the limit to at least %d (ulimit -n %d in a shell, LimitNOFILE=%d in a systemd unit, --ulimit nofile=%d of a container), or give this process fewer tasks",
		needed, descriptorsPerStore, tasks, tables, otherDescriptors, limit, needed, needed, needed, needed)
}

// defaultOpenFiles leaves most of a small limit to the databases themselves.
func defaultOpenFiles() int {
	limit, ok := fdlimit.Get()
	if !ok || limit/4 >= maxDefaultOpenFiles {
		return maxDefaultOpenFiles
	}
	return max(int(limit/4), 16)
}

const maxDefaultOpenFiles = 1000
