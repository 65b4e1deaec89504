package streams

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/processor"
)

// graphNode is one step of the program. The order in which steps are written into the
// topology decides the numbers of sub-topologies and the order of children; it is that of
// Kafka Streams: a step comes as soon as all it hangs on are written, those with the lowest
// priority first, and the priority is the number of its last edge.
type graphNode struct {
	name     string   // of the topology's node that children hang on
	topics   []string // of a source
	serdes   string   // of a source, for messages
	parents  []*graphNode
	children []*graphNode
	priority int
	write    func(t *processor.Topology, parents []string)
	nullKeys bool // it has a use for records without a key
}

// leadsToNullKeys tells whether somebody behind n has a use for records without a key.
func (n *graphNode) leadsToNullKeys() bool {
	return slices.ContainsFunc(n.children, func(c *graphNode) bool { return c.nullKeys || c.leadsToNullKeys() })
}

// hang hangs n on its parents. It may hang there already: that is a later edge all the same.
func (b *Builder) hang(n *graphNode, parents ...*graphNode) *graphNode {
	for _, p := range parents {
		if !slices.Contains(p.children, n) {
			p.children = append(p.children, n)
		}
		if !slices.Contains(n.parents, p) {
			n.parents = append(n.parents, p)
		}
		n.priority = b.priority
		b.priority++
	}
	return n
}

// hangProcessor adds a step that is one processor.
func hangProcessor[KIn, VIn, KOut, VOut any, P processor.Processor[KIn, VIn, KOut, VOut]](b *Builder, name string, newProcessor func() P, parents []*graphNode, stores ...processor.StoreDef) *graphNode {
	return b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		processor.AddProcessor(t, name, newProcessor, parents, stores...)
	}}, parents...)
}

// write puts all steps into a topology. The graph stays as it is.
func (b *Builder) write(t *processor.Topology) {
	same := b.mergeSources(t)
	stands := func(n *graphNode) *graphNode {
		if m := same[n]; m != nil {
			return m
		}
		return n
	}
	written := map[*graphNode]bool{b.root: true}
	var queue byPriority
	push := func(of *graphNode) {
		for _, c := range of.children {
			heap.Push(&queue, c)
		}
	}
	push(b.root)
	for len(queue) > 0 {
		n := heap.Pop(&queue).(*graphNode)
		if m := same[n]; m != nil {
			// Its children hang on m instead, which was added before it and is written.
			written[n] = true
			push(n)
			continue
		}
		if written[n] || slices.ContainsFunc(n.parents, func(p *graphNode) bool { return !written[stands(p)] }) {
			continue
		}
		var parents []string
		for _, p := range n.parents {
			if name := stands(p).name; !slices.Contains(parents, name) {
				parents = append(parents, name)
			}
		}
		n.write(t, parents)
		written[n] = true
		push(n)
	}
}

// mergeSources finds sources that read the same topics: the later ones become the first one.
func (b *Builder) mergeSources(t *processor.Topology) map[*graphNode]*graphNode {
	same := map[*graphNode]*graphNode{}
	first := map[string]*graphNode{}
	for _, n := range b.root.children {
		for _, topic := range n.topics {
			m := first[topic]
			switch {
			case m == nil:
				first[topic] = n
				continue
			case m == n || same[n] == m:
				continue
			case !equalSets(m.topics, n.topics):
				t.AddProblem(fmt.Errorf("sources %s %v and %s %v have some topics in common, but not all; a topic has one source", m.name, m.topics, n.name, n.topics))
			case m.serdes != n.serdes:
				t.AddProblem(fmt.Errorf("topic %s is read with serdes %s by source %s and with serdes %s by source %s", topic, m.serdes, m.name, n.serdes, n.name))
			}
			same[n] = m
		}
	}
	return same
}

func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// byPriority is a heap of steps.
type byPriority []*graphNode

func (q byPriority) Len() int           { return len(q) }
func (q byPriority) Less(i, j int) bool { return q[i].priority < q[j].priority }
func (q byPriority) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byPriority) Push(x any)        { *q = append(*q, x.(*graphNode)) }
func (q *byPriority) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
