package statedir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type taskName struct {
	subtopology, partition uint64
	id                     string
}

// parseTaskID takes only the one spelling that Tidemark and Kafka Streams write: no
// sign, no leading zero, so that two names never mean one task.
func parseTaskID(name string) (taskName, bool) {
	s, p, ok := strings.Cut(name, "_")
	if !ok {
		return taskName{}, false
	}
	subtopology, err1 := strconv.ParseUint(s, 10, 31)
	partition, err2 := strconv.ParseUint(p, 10, 31)
	if err1 != nil || err2 != nil {
		return taskName{}, false
	}
	id := fmt.Sprintf("%d_%d", subtopology, partition)
	return taskName{subtopology: subtopology, partition: partition, id: id}, id == name
}

func sortedTaskIDs(tasks []taskName) []string {
	slices.SortFunc(tasks, func(a, b taskName) int {
		return cmp.Or(cmp.Compare(a.subtopology, b.subtopology), cmp.Compare(a.partition, b.partition))
	})
	ids := make([]string, 0, len(tasks))
	for _, t := range tasks {
		ids = append(ids, t.id)
	}
	return ids
}
