package streams

import (
	"bytes"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// KGroupedTable is a table whose rows are to be aggregated by another key. A row that changes is
// taken out of its old group and put into its new one.
type KGroupedTable[K, V any] struct {
	b     *Builder
	node  *graphNode
	key   serde.Serde[K]
	value serde.Serde[V]
	// name is that of the repartition topic, if it has one of its own; then all aggregations
	// share the topic.
	name   string
	shared *graphNode
}

// GroupTable groups the rows of a table by the key, and with the value, that f gives. They go
// through a repartition topic; a name that with has is that of the node and of the topic, whose
// default is the name of the aggregation's store. A row that f gives a nil key or value is in no
// group.
func GroupTable[K, V, K2, V2 any](t *KTable[K, V], f func(K, V) (K2, V2), with Serdes[K2, V2]) *KGroupedTable[K2, V2] {
	out := &KGroupedTable[K2, V2]{b: t.b, key: with.key, value: with.value, node: t.node}
	const prefix = "KTABLE-SELECT-"
	name := t.b.nodeName(prefix, with.name)
	if len(with.name) > 0 {
		out.name = name
	}
	t.b.checkFunction(name, f == nil)
	if with.key == nil || with.value == nil {
		t.b.problem("%s: a serde is nil", name)
		return out
	}
	t.rows.sendOld(true)
	out.node = hangProcessor(t.b, name, func() *selectRow[K, V, K2, V2] {
		return &selectRow[K, V, K2, V2]{f: f, key: with.key, versioned: t.versioned}
	}, []*graphNode{t.node})
	return out
}

type selectRow[K, V, K2, V2 any] struct {
	f       func(K, V) (K2, V2)
	key     serde.Serde[K2]
	was, is []byte
	// versioned: the table is, and only the latest row of a key is in a group.
	versioned bool
}

// row is a row of a group; there is none without a key and a value.
type row[K, V any] struct {
	key    K
	value  V
	exists bool
}

func (p *selectRow[K, V, K2, V2]) row(key K, value V, exists bool) (r row[K2, V2]) {
	if !exists {
		return r
	}
	r.key, r.value = p.f(key, value)
	r.exists = !serde.IsNil(&r.key) && !serde.IsNil(&r.value)
	return r
}

// Process sends one change when the row stays in its group, else one to each group, the old one
// first: an aggregation must never hold a row twice.
func (p *selectRow[K, V, K2, V2]) Process(ctx processor.Context[K2, change[V2]], r processor.Record[K, change[V]]) error {
	if p.versioned && r.Value.late {
		return nil
	}
	is := p.row(r.Key, r.Value.new, r.Value.hasNew)
	was := p.row(r.Key, r.Value.old, r.Value.hasOld)
	same, err := p.same(&was, &is)
	if err != nil {
		return err
	}
	if same {
		return p.forward(ctx, r, is.key, change[V2]{new: is.value, old: was.value, hasNew: true, hasOld: true})
	}
	if was.exists {
		if err := p.forward(ctx, r, was.key, change[V2]{old: was.value, hasOld: true}); err != nil {
			return err
		}
	}
	if is.exists {
		return p.forward(ctx, r, is.key, change[V2]{new: is.value, hasNew: true})
	}
	return nil
}

func (p *selectRow[K, V, K2, V2]) forward(ctx processor.Context[K2, change[V2]], r processor.Record[K, change[V]], key K2, c change[V2]) error {
	return ctx.Forward(processor.WithValue(processor.WithKey(r, key), c))
}

// same tells whether both rows exist in one group: what has the same bytes is one key.
func (p *selectRow[K, V, K2, V2]) same(was, is *row[K2, V2]) (bool, error) {
	if !was.exists || !is.exists {
		return false, nil
	}
	var err error
	if p.was, err = p.key.Append(p.was[:0], was.key); err != nil {
		return false, err
	}
	if p.is, err = p.key.Append(p.is[:0], is.key); err != nil {
		return false, err
	}
	return bytes.Equal(p.was, p.is), nil
}

// partitioned gives the node behind which the rows of a group are in one partition.
func (g *KGroupedTable[K, V]) partitioned(store, sink, source string) *graphNode {
	prefix := g.name
	if prefix == "" {
		prefix = store
	}
	if g.shared == nil || g.name == "" {
		topic := prefix + repartitionSuffix
		changes := changeSerde[V]{g.value}
		g.shared = &graphNode{name: source, write: func(t *processor.Topology, parents []string) {
			t.AddInternalTopic(processor.InternalTopic{Name: topic})
			processor.AddSink(t, sink, topic, g.key, changes, parents...)
			processor.AddSource(t, source, g.key, changes, topic)
		}}
	}
	return g.b.hang(g.shared, g.node)
}
