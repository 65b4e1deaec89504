package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
)

// rowKeeper is how a table of a topic keeps its rows.
type rowKeeper[K, V any] struct {
	reader rowReader[K, V]
	open   func(ctx processor.StoreContext) putRow[K, V]
	// latest is the store, if it keeps only the row that came last.
	latest *processor.TimestampedKeyValueHandle[K, V]
}

// putRow writes the new value of a change, and marks the change if it is late. It tells whether
// it was written: what is older than a history is not.
type putRow[K, V any] func(key K, c *change[V], at time.Time) (stored bool, err error)

// keepLatest keeps the row that came last.
func keepLatest[K, V any](store string, with Serdes[K, V], m Materialized) rowKeeper[K, V] {
	handle := latest(m, store, with.key, with.value)
	return rowKeeper[K, V]{readStore(handle)(), func(ctx processor.StoreContext) putRow[K, V] {
		rows := handle.In(ctx)
		return func(key K, c *change[V], at time.Time) (bool, error) { return true, putNew(rows, key, c, at) }
	}, &handle}
}

// keepVersions keeps the rows of a key by their timestamps.
func keepVersions[K, V any](store string, with Serdes[K, V], m Materialized) rowKeeper[K, V] {
	handle := processor.Versioned(store, with.key, with.value, m.History)
	if m.Unlogged {
		handle = handle.Unlogged()
	}
	reader := rowReader[K, V]{[]processor.StoreDef{handle}, func(ctx processor.StoreContext) rowView[K, V] {
		rows := handle.In(ctx)
		return rowView[K, V]{
			get: func(key K) (V, time.Time, bool, error) {
				v, ok, err := rows.Get(key)
				return v.Value, v.From, ok, err
			},
			asOf: func(key K, at time.Time) (V, time.Time, bool, error) {
				v, ok, err := rows.GetAsOf(key, at)
				return v.Value, v.From, ok, err
			},
		}
	}}
	return rowKeeper[K, V]{reader, func(ctx processor.StoreContext) putRow[K, V] {
		rows := handle.In(ctx)
		return func(key K, c *change[V], at time.Time) (bool, error) {
			var put processor.PutResult
			var err error
			if c.hasNew {
				put, err = rows.Put(key, c.new, at)
			} else {
				put, err = rows.PutNull(key, at)
			}
			c.late = !put.Current
			return put.Stored, err
		}
	}, nil}
}
