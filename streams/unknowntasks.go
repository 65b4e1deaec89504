package streams

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/offsetcache"
)

// unknownTasks finds the directories of sub-topologies that the topology does not have: another version of the program
// made them, and may come back. Nobody opens them for writing; the cleaner removes them when nobody had the task for long.
func (a *App) unknownTasks(dir *statedir.Dir) (unknown []offsetcache.Directory, err error) {
	tasks, err := dir.TaskDirs()
	if err != nil {
		return nil, err
	}
	linked, err := dir.LinkedTaskDirs()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, sub := range a.topology.Subtopologies() {
		known[strconv.Itoa(sub.ID)] = true
	}
	var names []string
	for _, task := range slices.Concat(tasks, linked) {
		if sub, _, _ := strings.Cut(task, "_"); !known[sub] {
			unknown = append(unknown, offsetcache.Directory{Task: task, Path: dir.TaskDir(task)})
			names = append(names, task)
		}
	}
	if len(names) > 0 {
		a.log.Warn("task directories of sub-topologies that the topology does not have: left alone", "dir", dir.Path(),
			"tasks", fmt.Sprint(names), "sub-topologies", len(known))
	}
	return unknown, nil
}
