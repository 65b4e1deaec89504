package streams

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// pinPartitions finds the repartition topics that are joined with a topic whose number of
// partitions is given, and gives them that number, whatever writes them.
func (a *App) pinPartitions(counts map[string]int32) map[string]bool {
	pinned := map[string]bool{}
	given := func(topic string) bool {
		i, internal := a.topology.Internal(topic)
		return !internal || i.Partitions != 0 || pinned[topic]
	}
	for changed := true; changed; {
		changed = false
		for _, group := range a.topology.Copartitions() {
			from := slices.IndexFunc(group, given)
			if from < 0 {
				continue
			}
			for _, topic := range group {
				if !given(topic) {
					counts[topic], pinned[topic] = counts[group[from]], true
					changed = true
				}
			}
		}
	}
	return pinned
}

// alignPartitions gives repartition topics that are joined with one another as many partitions as
// the largest has, and tells whether anything has changed.
func (a *App) alignPartitions(counts map[string]int32, pinned map[string]bool) (changed bool) {
	for _, group := range a.topology.Copartitions() {
		var n int32
		for _, topic := range group {
			n = max(n, counts[topic])
		}
		for _, topic := range group {
			if i, internal := a.topology.Internal(topic); internal && i.Partitions == 0 && !pinned[topic] && counts[topic] < n {
				counts[topic] = n
				changed = true
			}
		}
	}
	return changed
}

// checkPartitions refuses to join topics whose partitions do not correspond: the records of a key
// would never meet.
func (a *App) checkPartitions(counts map[string]int32) error {
	var errs []error
	for _, group := range a.topology.Copartitions() {
		var each []string
		same := true
		for _, topic := range group {
			each = append(each, fmt.Sprintf("%s has %d", topic, counts[topic]))
			same = same && counts[topic] == counts[group[0]]
		}
		if !same {
			errs = append(errs, fmt.Errorf("topics that are joined need the same number of partitions, but %s; write one of them through Repartition with the other's number", strings.Join(each, ", ")))
		}
	}
	return errors.Join(errs...)
}
