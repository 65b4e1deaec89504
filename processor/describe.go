package processor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Describe gives the topology as text in the form of Kafka Streams' Topology.describe().
// Internal topics stand without the application's prefix. The topology must have been built.
//
// Where Kafka Streams' order is that of a Java hash table (the names after an arrow, topics,
// stores) ours is a fixed one, so that the text of a topology never changes.
func (t *Topology) Describe() string {
	var b strings.Builder
	b.WriteString("Topologies:\n ")
	for _, sub := range t.subs {
		fmt.Fprintf(&b, "  Sub-topology: %d\n", sub.ID)
		sub.describe(&b)
		b.WriteByte('\n')
	}
	return b.String()
}

func (sub *Subtopology) describe(b *strings.Builder) {
	weight := map[*node]int{}
	// The more of the graph hangs on a node, the earlier it stands.
	order := func(x, y *node) int {
		return cmp.Or(cmp.Compare(y.weigh(weight), x.weigh(weight)), strings.Compare(x.name, y.name))
	}
	names := func(nodes []*node) string {
		if len(nodes) == 0 {
			return "none"
		}
		var s []string
		for _, n := range slices.SortedFunc(slices.Values(nodes), order) {
			s = append(s, n.name)
		}
		return strings.Join(s, ", ")
	}
	parents := map[*node][]*node{}
	for _, n := range sub.nodes {
		for _, c := range n.children {
			parents[c] = append(parents[c], n)
		}
	}
	for _, n := range slices.SortedFunc(slices.Values(sub.nodes), order) {
		switch n.kind {
		case sourceKind:
			fmt.Fprintf(b, "    Source: %s (topics: [%s])\n      --> %s\n", n.name, strings.Join(n.topics, ", "), names(n.children))
		case processorKind:
			fmt.Fprintf(b, "    Processor: %s (stores: [%s])\n      --> %s\n      <-- %s\n", n.name, strings.Join(n.stores, ", "), names(n.children), names(parents[n]))
		case sinkKind:
			fmt.Fprintf(b, "    Sink: %s (topic: %s)\n      <-- %s\n", n.name, n.topic, names(parents[n]))
		}
	}
}

// weigh counts the ways down from n, the empty one included.
func (n *node) weigh(known map[*node]int) int {
	if w, ok := known[n]; ok {
		return w
	}
	w := 1
	for _, c := range n.children {
		w += c.weigh(known)
	}
	known[n] = w
	return w
}
