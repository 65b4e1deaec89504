package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Filter keeps the rows for which keep is true. A row that it is not true for is deleted.
func (t *KTable[K, V]) Filter(keep func(K, V) bool, options ...TableOption) *KTable[K, V] {
	return t.filter(keep, true, options)
}

// FilterNot keeps the rows for which drop is false. A row that it is true for is deleted.
func (t *KTable[K, V]) FilterNot(drop func(K, V) bool, options ...TableOption) *KTable[K, V] {
	return t.filter(drop, false, options)
}

func (t *KTable[K, V]) filter(f func(K, V) bool, want bool, options []TableOption) *KTable[K, V] {
	rows := &derived{from: t.rows, versioned: t.versioned}
	return hangRows(t, "KTABLE-FILTER-", t.value, rows, options, func(now derived) *tableMap[K, V, V] {
		return &tableMap[K, V, V]{derived: now, f: func(k K, v V) (V, bool) { return v, f(k, v) == want }, quiet: now.old && !t.versioned}
	}, f == nil, func() {
		// Old values are taken where they come for nothing: they spare deletes.
		rows.old = t.rows.sendOld(false)
	})
}

// MapTableValues gives every row another value. A nil value deletes the row.
func MapTableValues[K, V, V2 any](t *KTable[K, V], f func(V) V2, value serde.Serde[V2], options ...TableOption) *KTable[K, V2] {
	return mapTable(t, func(_ K, v V) V2 { return f(v) }, f == nil, value, options)
}

// MapTableValuesWithKey is [MapTableValues] with a function that looks at the key too.
func MapTableValuesWithKey[K, V, V2 any](t *KTable[K, V], f func(K, V) V2, value serde.Serde[V2], options ...TableOption) *KTable[K, V2] {
	return mapTable(t, f, f == nil, value, options)
}

func mapTable[K, V, V2 any](t *KTable[K, V], f func(K, V) V2, isNil bool, value serde.Serde[V2], options []TableOption) *KTable[K, V2] {
	return hangRows(t, "KTABLE-MAPVALUES-", value, &derived{from: t.rows, versioned: t.versioned}, options, func(now derived) *tableMap[K, V, V2] {
		return &tableMap[K, V, V2]{derived: now, f: func(k K, v V) (V2, bool) { v2 := f(k, v); return v2, !serde.IsNil(&v2) }}
	}, isNil, func() {})
}

// hangRows hangs up a node that makes rows out of rows, with a store if the options name one.
func hangRows[K, V, V2 any](t *KTable[K, V], prefix string, value serde.Serde[V2], rows *derived, options []TableOption, newMap func(derived) *tableMap[K, V, V2], isNil bool, ask func()) *KTable[K, V2] {
	o := tableOptionsOf(options)
	name := t.b.nodeName(prefix, o.named)
	t.b.checkFunction(name, isNil)
	ask()
	kept := keepRows(t.b, name, o.kept, t.key, value)
	rows.stored = kept != nil
	c := o.kept.caching(t.b, name)
	node := t.b.hang(&graphNode{name: name, write: func(top *processor.Topology, parents []string) {
		now := *rows
		var stores []processor.StoreDef
		if now.stored {
			stores = append(stores, *kept)
		}
		processor.AddProcessor(top, name, func() *tableMap[K, V, V2] {
			p := newMap(now)
			p.handle, p.key, p.caching = kept, t.key, c
			return p
		}, parents, stores...)
	}}, t.node)
	read := func() rowReader[K, V2] { return mapRows(t.reader(), newMap(derived{}).f) }
	if rows.stored {
		read = readStore(*kept)
	}
	return &KTable[K, V2]{b: t.b, node: node, key: t.key, value: value, rows: rows, read: read, versioned: t.versioned && !rows.stored}
}

// tableMap makes a row of a row, or leaves it out.
type tableMap[K, V, V2 any] struct {
	derived
	f func(K, V) (V2, bool)
	// quiet: nothing is sent when the row was out before and is out now.
	quiet   bool
	handle  *processor.TimestampedKeyValueHandle[K, V2]
	key     serde.Serde[K]
	caching caching
	kept    *processor.TimestampedKeyValueStore[K, V2]
	updates updates[K, V2]
}

// Init opens the store.
func (p *tableMap[K, V, V2]) Init(ctx processor.Context[K, change[V2]]) error {
	if p.stored {
		p.kept = p.handle.In(ctx)
		return p.updates.open(ctx, p.kept, p.key, p.caching, p.old)
	}
	return nil
}

// Process maps the row.
func (p *tableMap[K, V, V2]) Process(ctx processor.Context[K, change[V2]], r processor.Record[K, change[V]]) error {
	c := change[V2]{late: r.Value.late && !p.stored}
	if r.Value.hasNew {
		c.new, c.hasNew = p.f(r.Key, r.Value.new)
	}
	switch {
	case !p.old:
	case p.stored:
		if err := getOld(p.kept, r.Key, &c); err != nil {
			return err
		}
	case r.Value.hasOld:
		c.old, c.hasOld = p.f(r.Key, r.Value.old)
	}
	if p.quiet && !c.hasNew && !c.hasOld {
		return nil
	}
	if p.stored {
		return p.updates.put(ctx, processor.WithValue(r, c), r.Timestamp)
	}
	return ctx.Forward(processor.WithValue(r, c))
}
