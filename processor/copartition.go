package processor

import "slices"

// AddCopartition says that a record of one of the nodes finds the records of the same key of the
// others, or what was made of them, in its own task: so the topics behind the nodes need the same
// number of partitions.
func (t *Topology) AddCopartition(nodes ...string) { t.copartitions = append(t.copartitions, nodes) }

// Copartitions gives the groups of source topics that need the same number of partitions, each
// sorted; internal topics without the application's prefix. The topology must have been built.
func (t *Topology) Copartitions() [][]string {
	var groups [][]string
	for _, nodes := range t.copartitions {
		topics := map[string]bool{}
		seen := map[string]bool{}
		for _, n := range nodes {
			t.topicsAbove(n, topics, seen)
		}
		var group []string
		for topic := range topics {
			group = append(group, topic)
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	return groups
}

// topicsAbove collects the source topics from which records come to a node.
func (t *Topology) topicsAbove(name string, topics, seen map[string]bool) {
	n := t.byName[name]
	if n == nil || seen[name] {
		return
	}
	seen[name] = true
	for _, topic := range n.topics {
		topics[topic] = true
	}
	for _, p := range n.parents {
		t.topicsAbove(p, topics, seen)
	}
}
