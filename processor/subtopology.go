package processor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Subtopology is a part of the topology whose nodes are connected, directly or by a shared
// store; it talks to others only through topics. Each of its tasks runs one copy of it.
type Subtopology struct {
	// ID counts from 0, in the order of the parts' first nodes.
	ID int
	// Sources are the topics it reads, Sinks those it writes; internal ones without the
	// application's prefix. Both sorted, each topic once.
	Sources, Sinks []string
	// Stores are its stores, sorted by name.
	Stores []Definition

	nodes []*node // in the order of addition
}

// Subtopologies gives the sub-topologies, in the order of their ids. The topology must have
// been built.
func (t *Topology) Subtopologies() []*Subtopology { return t.subs }

// Internal tells whether a topic is the application's own, and gives its declaration.
func (t *Topology) Internal(topic string) (InternalTopic, bool) {
	i, ok := t.internal[topic]
	return i, ok
}

// InternalTopics gives the declared internal topics, sorted by name.
func (t *Topology) InternalTopics() []InternalTopic {
	return slices.SortedFunc(maps.Values(t.internal), func(a, b InternalTopic) int { return strings.Compare(a.Name, b.Name) })
}

// divide groups the nodes that are connected. The numbers are those of Kafka Streams for the
// same order of additions: tasks, and with them their state directories, keep their names
// when an application moves over.
func (t *Topology) divide() []*Subtopology {
	g := groups{}
	for _, n := range t.nodes {
		for _, c := range n.children {
			g.join(n, c)
		}
	}
	for _, s := range t.stores {
		for _, u := range s.users[1:] {
			g.join(s.users[0], u)
		}
	}
	var subs []*Subtopology
	of := map[*node]*Subtopology{}
	for _, n := range t.nodes {
		sub := of[g.find(n)]
		if sub == nil {
			sub = &Subtopology{ID: len(subs)}
			of[g.find(n)] = sub
			subs = append(subs, sub)
		}
		sub.add(n)
	}
	for _, s := range t.stores {
		sub := of[g.find(s.users[0])]
		sub.Stores = append(sub.Stores, s.def)
	}
	for _, sub := range subs {
		sub.sort()
	}
	return subs
}

// Undivided gives the whole topology as one sub-topology with the number 0: one task that reads
// every source topic, and itself reads what it writes to internal ones. It is for test drivers.
// The topology must have been built.
func (t *Topology) Undivided() *Subtopology {
	whole := &Subtopology{}
	for _, n := range t.nodes {
		whole.add(n)
	}
	for _, s := range t.stores {
		whole.Stores = append(whole.Stores, s.def)
	}
	whole.sort()
	return whole
}

// sort brings what a sub-topology tells about itself into order.
func (sub *Subtopology) sort() {
	slices.Sort(sub.Sources)
	slices.Sort(sub.Sinks)
	sub.Sinks = slices.Compact(sub.Sinks)
	slices.SortFunc(sub.Stores, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
}

func (sub *Subtopology) add(n *node) {
	sub.nodes = append(sub.nodes, n)
	sub.Sources = append(sub.Sources, n.topics...)
	if n.kind == sinkKind {
		sub.Sinks = append(sub.Sinks, n.topic)
	}
}

// groups is a union-find: each node leads to its group's representative.
type groups map[*node]*node

func (g groups) find(n *node) *node {
	next, ok := g[n]
	if !ok || next == n {
		return n
	}
	root := g.find(next)
	g[n] = root
	return root
}

func (g groups) join(a, b *node) { g[g.find(a)] = g.find(b) }
