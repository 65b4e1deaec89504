package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// JoinTable looks up the table's row of each record's key and gives f of both, with the timestamp
// of the record. Records that have no row go no further. Records with a null key or value are
// dropped and counted. The table's own updates give nothing: a record meets the rows that the
// task has read before it.
//
// If the key may have changed since the records were read, they go through a repartition topic
// first. The topics of both sides need the same number of partitions.
func JoinTable[K, V, VT, VOut any](in *KStream[K, V], table *KTable[K, VT], f func(key K, value V, row VT) VOut, value serde.Serde[VOut], named ...Named) *KStream[K, VOut] {
	return joinTable(in, table, "KSTREAM-JOIN-", tableLookup[K, V, VT, VOut]{
		f: func(k K, v V, row VT, _ bool) VOut { return f(k, v, row) },
	}, f == nil, value, named)
}

// LeftJoinTable is [JoinTable] that gives records without a row too: f is told whether there is
// one. A record with a null key has none.
func LeftJoinTable[K, V, VT, VOut any](in *KStream[K, V], table *KTable[K, VT], f func(key K, value V, row VT, found bool) VOut, value serde.Serde[VOut], named ...Named) *KStream[K, VOut] {
	return joinTable(in, table, "KSTREAM-LEFTJOIN-", tableLookup[K, V, VT, VOut]{left: true, f: f}, f == nil, value, named)
}

func joinTable[K, V, VT, VOut any](in *KStream[K, V], table *KTable[K, VT], prefix string, lookup tableLookup[K, V, VT, VOut], isNil bool, value serde.Serde[VOut], named []Named) *KStream[K, VOut] {
	b := in.b
	given, parent := b.given(prefix, named), in.node
	if in.rekeyed {
		topic := given
		if topic == "" {
			topic = in.node.name
		}
		parent = b.hang(newRepartition(b, topic, 0, in.key, in.value), in.node)
	}
	name := b.generated(prefix)
	if given != "" {
		name = given
	}
	b.checkFunction(name, isNil)
	if table.b != b {
		b.problem("%s: the stream and the table come from two builders", name)
	}
	lookup.reader = table.reader()
	node := b.hang(&graphNode{name: name, nullKeys: lookup.left, write: func(t *processor.Topology, parents []string) {
		processor.AddProcessor(t, name, func() *tableLookup[K, V, VT, VOut] { l := lookup; return &l }, parents, lookup.reader.stores...)
		lookup.reader.readByKey(t, name)
		t.AddCopartition(name, table.node.name)
	}}, parent)
	return &KStream[K, VOut]{b: b, node: node, key: in.key, value: value}
}

// tableLookup joins records with rows.
type tableLookup[K, V, VT, VOut any] struct {
	left   bool
	f      func(k K, v V, row VT, found bool) VOut
	reader rowReader[K, VT]
	rows   rowView[K, VT]
}

// Init opens the table.
func (p *tableLookup[K, V, VT, VOut]) Init(ctx processor.Context[K, VOut]) error {
	p.rows = p.reader.open(ctx)
	return nil
}

// Process looks up the row of r.
func (p *tableLookup[K, V, VT, VOut]) Process(ctx processor.Context[K, VOut], r processor.Record[K, V]) error {
	switch {
	case !r.HasValue():
		processor.Drop(ctx, nullValue)
		return nil
	case r.HasKey():
	case p.left:
		var none VT
		return ctx.Forward(processor.WithValue(r, p.f(r.Key, r.Value, none, false)))
	default:
		processor.Drop(ctx, nullKey)
		return nil
	}
	row, found, err := p.row(r.Key, r.Timestamp)
	if err != nil || !found && !p.left {
		return err
	}
	return ctx.Forward(processor.WithValue(r, p.f(r.Key, r.Value, row, found)))
}

// row gives the row of a key: a versioned table's of that time, another one's of now.
func (p *tableLookup[K, V, VT, VOut]) row(key K, at time.Time) (row VT, found bool, err error) {
	if p.rows.asOf != nil {
		row, _, found, err = p.rows.asOf(key, at)
	} else {
		row, _, found, err = p.rows.get(key)
	}
	return row, found, err
}
