package metrics

import (
	"errors"
	"io/fs"

	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

var (
	localTasks = gauge("local_tasks", "Tasks that this host has something of: latest are those that run here and stand at the end of their changelogs.", "latest")
	localSteps = gauge("local_changelog_offset", "Next changelog offset of what this host has of the store; left out where there is none.", "task", "store")

	scanSeconds     = gauge("scan_seconds", "How long the reading of the task directories at start took.")
	scanDirectories = gauge("scan_directories", "Task directories that were read at start, by what was found.", "found")
	scanReplayed    = gauge("scan_replayed_bytes", "Database log that had to be read through at start: that of tasks that were not closed.")
	scanFailures    = gauge("scan_failures", "Task directories that could not be read at start, by reason. Their tasks are restored from the changelogs.", "reason")
)

// reasons of scan failures, most particular first; what none of them is, is "other".
var reasons = []struct {
	name string
	err  error
}{
	{"locked", statestore.ErrLocked},
	{"newer_format", statestore.ErrNewerFormat},
	{"corrupt", statestore.ErrCorrupt},
	{"permission", fs.ErrPermission},
	{"legacy", offsetcache.ErrLegacy},
	{"gone", fs.ErrNotExist},
}

func reasonOf(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "other"
}

func (c collection) local(tasks []offsetcache.Task) {
	if tasks == nil {
		return
	}
	count := map[bool]int64{}
	for _, t := range tasks {
		count[t.Latest]++
		for _, o := range t.Offsets {
			if next, ok := o.Offset.Next(); ok {
				c.count(localSteps, next, t.ID, o.Store)
			}
		}
	}
	c.count(localTasks, count[true], "true")
	c.count(localTasks, count[false], "false")
}

func (c collection) scan(s *offsetcache.Scan) {
	if s == nil {
		return
	}
	c.add(scanSeconds, s.Elapsed.Seconds())
	c.count(scanDirectories, int64(s.Opened), "state")
	c.count(scanDirectories, int64(s.Empty), "nothing")
	c.count(scanDirectories, int64(len(s.Failed)), "failure")
	c.count(scanReplayed, s.ReplayedBytes)
	count := map[string]int64{}
	for _, f := range s.Failed {
		count[reasonOf(f.Err)]++
	}
	for _, r := range reasons {
		c.count(scanFailures, count[r.name], r.name)
	}
	c.count(scanFailures, count["other"], "other")
}
