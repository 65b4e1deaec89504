package streams

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/processor"
)

// Builder builds a [Topology] out of streams and tables. Problems are not reported by the
// operators but by [Builder.Build], all together, so that operators can be chained. A builder
// belongs to one goroutine.
type Builder struct {
	root     *graphNode // sources hang on it
	index    int        // of the next generated name
	priority int        // of the next edge
	problems []error
	// owners are the operators that keep their state in a store of their own, by its name.
	owners map[string]string
}

// NewBuilder gives an empty builder.
func NewBuilder() *Builder {
	return &Builder{root: &graphNode{}, owners: map[string]string{}}
}

// Build makes the topology. It reports every problem at once, with the names of the nodes. It
// may be called again, also after more was added.
//
// Nodes, stores, topics and sub-topologies have the names and numbers that Kafka Streams
// gives to the same program. Generated names hold a counter: whoever gives a name to what is
// kept (stores and repartition topics) can change a program without losing its state.
func (b *Builder) Build() (*Topology, error) {
	t := processor.NewTopology()
	for _, err := range b.problems {
		t.AddProblem(err)
	}
	b.write(t)
	if err := t.Build(); err != nil {
		return nil, err
	}
	return t, nil
}

func (b *Builder) problem(format string, a ...any) {
	b.problems = append(b.problems, fmt.Errorf(format, a...))
}

// own makes sure that no two operators keep their state in one store. (Processors may share
// a store, also an operator's: they know what is in it.)
func (b *Builder) own(store, node string) {
	if other, ok := b.owners[store]; ok {
		b.problem("store %s is the store of two operators, %s and %s; give one of them another name", store, other, node)
		return
	}
	b.owners[store] = node
}
