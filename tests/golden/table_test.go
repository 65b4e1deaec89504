package golden

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// table is a table of any type of values.
type table interface {
	filter(b *builder, n node) table
	mapValues(b *builder, n node) table
	toStream(n node) *stream
	groupBy(n node) *streams.KGroupedTable[any, any]
	joinStream(in *stream, n node) *stream
	rightOf(b *builder, left table, n node) table
}

// tableOf is a table; values is the serde of its values.
type tableOf[V any] struct {
	t      *streams.KTable[any, V]
	values serde.Serde[V]
}

func (b *builder) onTable(in table, n node) {
	switch n.Op {
	case "joinTables":
		b.nodes[n.ID] = b.nodes[n.From[1]].(table).rightOf(b, in, n)
	case "filter", "filterNot":
		b.nodes[n.ID] = in.filter(b, n)
	case "mapValues":
		b.nodes[n.ID] = in.mapValues(b, n)
	case "toStream":
		b.nodes[n.ID] = in.toStream(n)
	case "groupBy":
		b.nodes[n.ID] = in.groupBy(n)
	default:
		panic(unsupported{n.Op + " of a table"})
	}
}

// options gives the name and the store of an operation.
func options[V any](b *builder, n node, values serde.Serde[V]) []streams.TableOption {
	all := []streams.TableOption{streams.Named(n.ID)}
	if n.As != "" {
		keep(b, n.As, values)
		all = append(all, streams.Materialized{Name: n.As})
	}
	return all
}

// keep remembers the store of a table.
func keep[V any](b *builder, name string, values serde.Serde[V]) {
	if name != "" {
		b.stores[name] = timestampedRows(processor.TimestampedKeyValue(name, dyn, values))
	}
}

func (t tableOf[V]) filter(b *builder, n node) table {
	p := predicate(n.If)
	f, o := func(k any, v V) bool { return p(k, v) }, options(b, n, t.values)
	if n.Op == "filter" {
		return tableOf[V]{t.t.Filter(f, o...), t.values}
	}
	return tableOf[V]{t.t.FilterNot(f, o...), t.values}
}

func (t tableOf[V]) mapValues(b *builder, n node) table {
	f := valueFunction(n.Fn)
	return tableOf[any]{streams.MapTableValuesWithKey(t.t, func(k any, v V) any { return f(k, v) }, dyn, options(b, n, dyn)...), dyn}
}

func (t tableOf[V]) toStream(n node) *stream {
	s := streams.MapValues(t.t.ToStream(streams.Named(n.ID)), func(v V) any { return v }, dyn)
	if n.Key != "" {
		s = streams.SelectKey(s, keyFunction(n.Key), dyn)
	}
	return s
}

func (t tableOf[V]) groupBy(n node) *streams.KGroupedTable[any, any] {
	f := pairFunction(n.Fn)
	return streams.GroupTable(t.t, func(k any, v V) (any, any) { return f(k, v) }, with.Named(n.ID))
}

func (b *builder) onGroupedStream(g *streams.KGroupedStream[any, any], n node) {
	m, named := streams.Materialized{Name: n.As}, streams.Named(n.ID)
	if w, ok := n.Window.(map[string]any); ok {
		panic(unsupported{w["kind"].(string) + " windows"})
	}
	switch n.Op {
	case "count":
		keep(b, n.As, serde.Int64)
		b.nodes[n.ID] = tableOf[int64]{g.Count(m, named), serde.Int64}
		return
	case "reduce":
		b.nodes[n.ID] = tableOf[any]{g.Reduce(aggregator(n.Add), m, named), dyn}
	case "aggregate":
		add := aggregator(n.Add)
		b.nodes[n.ID] = tableOf[any]{streams.Aggregate(g, func() any { return n.Init.v }, func(_, v, agg any) any { return add(agg, v) }, dyn, m, named), dyn}
	default:
		panic(unsupported{n.Op})
	}
	keep(b, n.As, dyn)
}

func (b *builder) onGroupedTable(g *streams.KGroupedTable[any, any], n node) {
	m, named := streams.Materialized{Name: n.As}, streams.Named(n.ID)
	switch n.Op {
	case "count":
		keep(b, n.As, serde.Int64)
		b.nodes[n.ID] = tableOf[int64]{g.Count(m, named), serde.Int64}
		return
	case "reduce":
		b.nodes[n.ID] = tableOf[any]{g.Reduce(aggregator(n.Add), aggregator(n.Sub), m, named), dyn}
	case "aggregate":
		add, sub := aggregator(n.Add), aggregator(n.Sub)
		b.nodes[n.ID] = tableOf[any]{streams.AggregateTable(g, func() any { return n.Init.v }, func(_, v, agg any) any { return add(agg, v) }, func(_, v, agg any) any { return sub(agg, v) }, dyn, m, named), dyn}
	default:
		panic(unsupported{n.Op})
	}
	keep(b, n.As, dyn)
}
