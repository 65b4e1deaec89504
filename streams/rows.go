package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// getOld reads the row that a change replaces.
func getOld[K, V any](rows *processor.TimestampedKeyValueStore[K, V], key K, c *change[V]) (err error) {
	c.old, _, c.hasOld, err = rows.Get(key)
	return err
}

// putNew writes a change's new row, or deletes it.
func putNew[K, V any](rows *processor.TimestampedKeyValueStore[K, V], key K, c *change[V], at time.Time) error {
	if !c.hasNew {
		return rows.Delete(key, at)
	}
	return rows.Put(key, c.new, at)
}

// keepRows gives the handle of the store that m names for the rows of a node, nil for none.
func keepRows[K, V any](b *Builder, node string, m Materialized, key serde.Serde[K], value serde.Serde[V]) *processor.TimestampedKeyValueHandle[K, V] {
	if m.History != 0 {
		b.problem("%s: only a table of a topic or a stream can keep a history", node)
	}
	if m.Name == "" {
		return nil
	}
	if key == nil || value == nil {
		b.problem("%s: a serde is nil", node)
		return nil
	}
	b.own(m.Name, node)
	handle := latest(m, m.Name, key, value)
	return &handle
}

// rowReader is how an operator reads the rows of a table.
type rowReader[K, V any] struct {
	stores []processor.StoreDef // to be connected to the operator
	open   func(ctx processor.StoreContext) rowView[K, V]
}

// rowView reads rows, with the time they are from.
type rowView[K, V any] struct {
	get func(key K) (row V, at time.Time, ok bool, err error)
	// asOf gives what a versioned table had for a key at a time; nil for others.
	asOf func(key K, at time.Time) (row V, from time.Time, ok bool, err error)
}

// reader makes the rows readable. A table that could not be built has nothing to read.
func (t *KTable[K, V]) reader() rowReader[K, V] {
	if t.read == nil {
		return rowReader[K, V]{}
	}
	return t.read()
}

// readByKey tells a topology that a node reads the rows with the keys of its records.
func (r rowReader[K, V]) readByKey(t *processor.Topology, node string) {
	for _, s := range r.stores {
		if d := s.Definition(); d.Kind == statestore.KindTimestampedKeyValue {
			processor.ReadsByKey(t, node, d.Name)
		}
	}
}

// readStore reads rows where they are kept.
func readStore[K, V any](handle processor.TimestampedKeyValueHandle[K, V]) func() rowReader[K, V] {
	return func() rowReader[K, V] {
		return rowReader[K, V]{[]processor.StoreDef{handle}, func(ctx processor.StoreContext) rowView[K, V] { return rowView[K, V]{get: handle.In(ctx).Get} }}
	}
}

// mapRows reads rows that are made of others.
func mapRows[K, V, V2 any](from rowReader[K, V], f func(K, V) (V2, bool)) rowReader[K, V2] {
	made := func(key K, v V, at time.Time, ok bool, err error) (V2, time.Time, bool, error) {
		if !ok || err != nil {
			var none V2
			return none, at, false, err
		}
		row, ok := f(key, v)
		return row, at, ok, nil
	}
	return rowReader[K, V2]{from.stores, func(ctx processor.StoreContext) (view rowView[K, V2]) {
		rows := from.open(ctx)
		view.get = func(key K) (V2, time.Time, bool, error) {
			v, at, ok, err := rows.get(key)
			return made(key, v, at, ok, err)
		}
		if rows.asOf != nil {
			view.asOf = func(key K, at time.Time) (V2, time.Time, bool, error) {
				v, from, ok, err := rows.asOf(key, at)
				return made(key, v, from, ok, err)
			}
		}
		return view
	}}
}
