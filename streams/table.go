package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Table reads a topic as a table: a record is the new row of its key, one with a null value
// deletes the row. Records with a null key are dropped and counted. A record that is older than
// the row replaces it all the same: what counts is the order in the topic.
//
// The table keeps its rows if its store has a name, or if an operation behind it needs them.
// A topic that is read as a table is read by nothing else.
func Table[K, V any](b *Builder, topic string, with Serdes[K, V], m Materialized) *KTable[K, V] {
	store := b.storeName(topic+"-", m.Name)
	source, name := b.generated("KSTREAM-SOURCE-"), b.generated("KTABLE-SOURCE-")
	if given := b.given("KTABLE-SOURCE-", with.name); given != "" {
		source, name = given+"-source", given
	}
	rows := &sourced{}
	write, read := writeTable(b, store, name, with, m, rows)
	node := b.hang(&graphNode{name: name, write: func(t *processor.Topology, _ []string) {
		processor.AddSource(t, source, with.key, with.value, topic)
		write(t, []string{source})
	}}, b.root)
	return &KTable[K, V]{b: b, node: node, key: with.key, value: with.value, rows: rows, read: read, versioned: rows.versioned}
}

// ToTable reads the stream as a table, as [Table] does a topic. If the key may have changed
// since the records were read, they go through a repartition topic first.
func (s *KStream[K, V]) ToTable(m Materialized, named ...Named) *KTable[K, V] {
	const prefix = "KSTREAM-TOTABLE-"
	name := s.b.nodeName(prefix, named)
	store := s.b.storeName(prefix, m.Name)
	parent := s.node
	if s.rekeyed {
		parent = s.b.hang(newRepartition(s.b, name, 0, s.key, s.value), s.node)
	}
	rows := &sourced{}
	write, read := writeTable(s.b, store, name, With(s.key, s.value), m, rows)
	node := s.b.hang(&graphNode{name: name, write: write}, parent)
	return &KTable[K, V]{b: s.b, node: node, key: s.key, value: s.value, rows: rows, read: read, versioned: rows.versioned}
}

// writeTable writes the node that makes rows of records. Whether they are kept is known only
// then.
func writeTable[K, V any](b *Builder, store, name string, with Serdes[K, V], m Materialized, rows *sourced) (write func(*processor.Topology, []string), read func() rowReader[K, V]) {
	switch {
	case m.Name != "":
		b.own(store, name)
		rows.stored, rows.versioned = true, m.History != 0
	case m.History != 0:
		b.problem("%s: a table that keeps a history needs a name for its store", name)
	}
	if with.key == nil || with.value == nil {
		b.problem("%s: a serde is nil", name)
		return func(*processor.Topology, []string) {}, func() rowReader[K, V] { return rowReader[K, V]{} }
	}
	kept, c := keepLatest(store, with, m), m.caching(b, name)
	if rows.versioned {
		kept = keepVersions(store, with, m)
	}
	read = func() rowReader[K, V] {
		rows.stored = true
		return kept.reader
	}
	return func(t *processor.Topology, parents []string) {
		now := *rows
		var stores []processor.StoreDef
		if now.stored {
			stores = kept.reader.stores
		}
		processor.AddProcessor(t, name, func() *tableSource[K, V] {
			return &tableSource[K, V]{sourced: now, kept: kept, key: with.key, caching: c}
		}, parents, stores...)
		if now.old {
			kept.reader.readByKey(t, name)
		}
	}, read
}

type tableSource[K, V any] struct {
	sourced
	kept    rowKeeper[K, V]
	key     serde.Serde[K]
	caching caching
	rows    rowView[K, V]
	put     putRow[K, V]
	updates updates[K, V]
}

// Init opens the store.
func (p *tableSource[K, V]) Init(ctx processor.Context[K, change[V]]) error {
	if !p.stored {
		return nil
	}
	p.rows, p.put = p.kept.reader.open(ctx), p.kept.open(ctx)
	if p.kept.latest == nil {
		return nil // each version is sent on
	}
	return p.updates.open(ctx, p.kept.latest.In(ctx), p.key, p.caching, p.old)
}

// Process makes a row of r.
func (p *tableSource[K, V]) Process(ctx processor.Context[K, change[V]], r processor.Record[K, V]) (err error) {
	if !r.HasKey() {
		processor.Drop(ctx, nullKey)
		return nil
	}
	c := change[V]{new: r.Value, hasNew: r.HasValue()}
	if p.updates.cache != nil {
		return p.updates.put(ctx, processor.WithValue(r, c), r.Timestamp)
	}
	if p.old {
		if c.old, _, c.hasOld, err = p.rows.get(r.Key); err != nil {
			return err
		}
	}
	if p.stored {
		if stored, err := p.put(r.Key, &c, r.Timestamp); !stored || err != nil {
			return err
		}
	}
	return ctx.Forward(processor.WithValue(r, c))
}
