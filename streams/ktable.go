package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// KTable is a table: each record is the new row of its key, or deletes it.
//
// A table of its own topic, an aggregation, or one whose store is named, keeps its rows. Others
// only send updates on, and cannot tell whether a row that is not in them ever was: they send
// deletes of rows that nobody has seen.
type KTable[K, V any] struct {
	b     *Builder
	node  *graphNode
	key   serde.Serde[K]
	value serde.Serde[V]
	rows  oldValues
	// read makes the rows readable for an operator that looks them up, which can mean that the
	// table gets a store.
	read func() rowReader[K, V]
	// versioned: late rows are marked, and pass over whoever wants the latest.
	versioned bool
}

// Materialized says how a table is kept. The zero value gives its store a generated name.
type Materialized struct {
	// Name of the store. Its changelog is <app id>-<name>-changelog. A store that has a name
	// keeps its data when other parts of the program change. Its rows are read through
	// processor.TimestampedKeyValue (with History through processor.Versioned) of the same name
	// and serdes.
	Name string
	// History, if not 0, is for [Table] and [KStream.ToTable] with a Name: the table also keeps the
	// rows that it had, for so long by its own stream time (whole milliseconds), and orders them by
	// their timestamps. A stream that is joined with it meets the row of the record's own time,
	// joins and aggregations of tables pass over rows that come late, and what is older than the
	// history is dropped.
	History time.Duration
	// Caching holds the table's updates back until the task commits, and then sends on the last one of
	// each key, with the row before the interval as its old value; a row that came and went in between
	// is not sent. Rows are kept, and can be read, at once. Fewer updates for downstream, and none
	// before the commit. The default for tables that keep their rows is [StoreConfig].Caching;
	// CachingDisabled says that this one sends every update.
	Caching, CachingDisabled bool
	// Unlogged keeps the table's rows without a changelog, on the disk of this host only: see
	// [processor.KeyValueHandle.Unlogged]. It is for at-least-once only.
	Unlogged bool
}

// latest gives the store of a table that keeps the rows that came last.
func latest[K, V any](m Materialized, store string, key serde.Serde[K], value serde.Serde[V]) processor.TimestampedKeyValueHandle[K, V] {
	handle := processor.TimestampedKeyValue(store, key, value)
	if m.Unlogged {
		return handle.Unlogged()
	}
	return handle
}

// TableOption is a further argument of an operation on a table: a [Named] for its node, or a
// [Materialized] with a name, which makes it keep its rows in a store.
type TableOption interface{ tableOption(*tableOptions) }

type tableOptions struct {
	named []Named
	kept  Materialized
}

func (n Named) tableOption(o *tableOptions)        { o.named = append(o.named, n) }
func (m Materialized) tableOption(o *tableOptions) { o.kept = m }

func tableOptionsOf(options []TableOption) (o tableOptions) {
	for _, x := range options {
		x.tableOption(&o)
	}
	return o
}

// ToStream gives the table's updates as a stream. A deleted row is a record with a null value.
func (t *KTable[K, V]) ToStream(named ...Named) *KStream[K, V] {
	name := t.b.nodeName("KTABLE-TOSTREAM-", named)
	node := hangProcessor(t.b, name, newToStream[K, V], []*graphNode{t.node})
	return &KStream[K, V]{b: t.b, node: node, key: t.key, value: t.value}
}

type toStream[K, V any] struct{}

func newToStream[K, V any]() toStream[K, V] { return toStream[K, V]{} }

// Process forwards the new value.
func (toStream[K, V]) Process(ctx processor.Context[K, V], r processor.Record[K, change[V]]) error {
	if !r.Value.hasNew {
		return ctx.Forward(processor.WithNullValue[V](r))
	}
	return ctx.Forward(processor.WithValue(r, r.Value.new))
}
