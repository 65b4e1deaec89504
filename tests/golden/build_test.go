package golden

import (
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// builder makes a topology of a case's nodes. It panics with unsupported for what does not exist.
type builder struct {
	b      *streams.Builder
	hand   *processor.Topology // of a low-level topology
	nodes  map[string]any      // streams, tables and groupings, by id
	stores map[string]store
}

var (
	dyn  serde.Serde[any] = dynamic{}
	with                  = streams.With(dyn, dyn)
)

func build(c *goldenCase) (t *streams.Topology, stores map[string]store, err error) {
	b := &builder{b: streams.NewBuilder(), nodes: map[string]any{}, stores: map[string]store{}}
	b.checkConfig(c)
	for _, n := range c.Topology {
		if n.Op == "store" {
			b.stores[n.ID] = declare(n)
		}
	}
	for _, n := range c.Topology {
		switch n.Op {
		case "store":
		case "source", "processor", "sink":
			b.byHand(n)
		default:
			b.add(n)
		}
	}
	if b.hand != nil {
		return b.hand, b.stores, b.hand.Build()
	}
	t, err = b.b.Build()
	return t, b.stores, err
}

func (b *builder) checkConfig(c *goldenCase) {
	switch {
	case c.Config.Optimize != nil:
		panic(unsupported{"config optimize"})
	case c.Config.OnProcessError != "":
		panic(unsupported{"config onProcessError"})
	}
}

// handles gives the stores that a node names. One that no node declares cannot be said: a
// handle is the declaration.
func (b *builder) handles(names []string) (all []processor.StoreDef) {
	for _, name := range names {
		s, ok := b.stores[name]
		if !ok {
			panic(unsupported{"a store that is not declared"})
		}
		all = append(all, s.def)
	}
	return all
}

func (b *builder) byHand(n node) {
	if b.hand == nil {
		b.hand = processor.NewTopology()
	}
	switch n.Op {
	case "source":
		processor.AddSource(b.hand, n.ID, dyn, dyn, n.Topic...)
	case "processor":
		processor.AddProcessor(b.hand, n.ID, newProc(n.Proc, b.stores), n.From, b.handles(n.Stores)...)
	case "sink":
		processor.AddSink(b.hand, n.ID, n.Topic[0], dyn, dyn, n.From...)
	}
}

// add adds a node of the DSL.
func (b *builder) add(n node) {
	switch n.Op {
	case "stream":
		b.nodes[n.ID] = streams.StreamTopics(b.b, n.Topic, with.Named(n.ID))
		return
	case "table":
		m := streams.Materialized{Name: n.As}
		keep(b, n.As, dyn)
		if n.Versioned != nil {
			m.History = ms(*n.Versioned)
			b.stores[n.As] = declare(node{ID: n.As, Type: "versioned", History: *n.Versioned})
		}
		b.nodes[n.ID] = tableOf[any]{streams.Table(b.b, n.Topic[0], with.Named(n.ID), m), dyn}
		return
	case "globalTable":
		panic(unsupported{n.Op})
	}
	switch in := b.nodes[n.From[0]].(type) {
	case *stream:
		b.onStream(in, n)
	case table:
		b.onTable(in, n)
	case *streams.KGroupedStream[any, any]:
		b.onGroupedStream(in, n)
	case *streams.KGroupedTable[any, any]:
		b.onGroupedTable(in, n)
	default:
		panic(unsupported{n.Op})
	}
}

type stream = streams.KStream[any, any]

func (b *builder) onStream(in *stream, n node) {
	named := streams.Named(n.ID)
	switch n.Op {
	case "to":
		in.To(n.Topic[0])
	case "filter":
		b.nodes[n.ID] = in.Filter(predicate(n.If), named)
	case "filterNot":
		b.nodes[n.ID] = in.FilterNot(predicate(n.If), named)
	case "mapValues":
		b.nodes[n.ID] = streams.MapValuesWithKey(in, valueFunction(n.Fn), dyn, named)
	case "map":
		b.nodes[n.ID] = streams.Map(in, pairFunction(n.Fn), with.Named(n.ID))
	case "selectKey":
		b.nodes[n.ID] = streams.SelectKey(in, keyFunction(n.Fn), dyn, named)
	case "flatMapValues":
		b.nodes[n.ID] = streams.FlatMapValues(in, flatValues(n.Fn), dyn, named)
	case "flatMap":
		f := flatPairs(n.Fn)
		b.nodes[n.ID] = streams.FlatMap(in, func(k, v any) (out []streams.KeyValue[any, any]) {
			for _, p := range f(k, v) {
				out = append(out, streams.KeyValue[any, any]{Key: p[0], Value: p[1]})
			}
			return out
		}, with.Named(n.ID))
	case "joinStreamTable":
		b.nodes[n.ID] = b.nodes[n.From[1]].(table).joinStream(in, n)
	case "split":
		b.split(in, n)
	case "merge":
		b.merge(in, n)
	case "groupByKey":
		b.nodes[n.ID] = in.GroupByKey()
	case "groupBy":
		b.nodes[n.ID] = streams.GroupBy(in, keyFunction(n.Fn), dyn)
	case "toTable":
		keep(b, n.As, dyn)
		b.nodes[n.ID] = tableOf[any]{in.ToTable(streams.Materialized{Name: n.As}, named), dyn}
	case "repartition":
		b.nodes[n.ID] = in.Repartition(streams.Repartitioned{Name: n.Name})
	case "process":
		b.nodes[n.ID] = streams.Process(in, newProc(n.Proc, b.stores), with.Named(n.ID), b.handles(n.Stores)...)
	case "processValues":
		b.nodes[n.ID] = streams.ProcessValues(in, newProc(n.Proc, b.stores), with.Named(n.ID), b.handles(n.Stores)...)
	default:
		panic(unsupported{n.Op})
	}
}

func (b *builder) split(in *stream, n node) {
	split := in.Split(streams.Named(n.ID + "-split"))
	for _, branch := range n.Branches {
		b.nodes[branch.ID] = split.Branch(predicate(branch.If))
	}
	if n.Default != "" {
		b.nodes[n.Default] = split.DefaultBranch()
	}
}

func (b *builder) merge(in *stream, n node) {
	for i, from := range n.From[1:] {
		id := n.ID
		if i < len(n.From)-2 {
			id = fmt.Sprintf("%s-%d", n.ID, i)
		}
		in = in.Merge(b.nodes[from].(*stream), streams.Named(id))
	}
	b.nodes[n.ID] = in
}

// topicsOf gives the topics that the nodes of an operation name.
func topicsOf(c *goldenCase, ops ...string) (topics []string) {
	for _, n := range c.Topology {
		if slices.Contains(ops, n.Op) {
			topics = append(topics, n.Topic...)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}
