package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// caching is what a table says about its updates: nothing, so that [StoreConfig] decides, or that they
// are held back until the commit, or that they are not.
type caching uint8

const (
	cachingDefault caching = iota
	cachingEnabled
	cachingDisabled
)

// caching gives what m says, and reports a contradiction.
func (m Materialized) caching(b *Builder, node string) caching {
	switch {
	case m.Caching && m.CachingDisabled:
		b.problem("%s: its caching is both enabled and disabled", node)
	case m.Caching && m.History != 0:
		b.problem("%s: a table that keeps a history cannot cache: each version counts", node)
	case m.Caching:
		return cachingEnabled
	case m.CachingDisabled:
		return cachingDisabled
	}
	return cachingDefault
}

// updates is how a table that keeps its rows sends their changes on: each at once, or with caching
// the last one of each key when the task commits.
type updates[K, V any] struct {
	rows  *processor.TimestampedKeyValueStore[K, V]
	cache *processor.Cache[K, change[V]] // nil without caching
}

// open is called in the Init of the table's node. old: somebody behind the table asked for old
// values.
func (u *updates[K, V]) open(ctx processor.Context[K, change[V]], rows *processor.TimestampedKeyValueStore[K, V], key serde.Serde[K], c caching, old bool) (err error) {
	u.rows = rows
	u.cache, err = openCache(ctx, key, c, old)
	return err
}

// openCache gives a table's cache, nil if it has none.
func openCache[K, V any](ctx processor.Context[K, change[V]], key serde.Serde[K], c caching, old bool) (*processor.Cache[K, change[V]], error) {
	if c == cachingDisabled || c == cachingDefault && !processor.CachesAll(ctx) {
		return nil, nil
	}
	return processor.NewCache(ctx, key, lastChange[V], func(c change[V]) (change[V], bool) { return settled(c, old) })
}

// lastChange puts two changes of a row together.
func lastChange[V any](earlier, later change[V]) change[V] {
	later.old, later.hasOld = earlier.old, earlier.hasOld
	return later
}

// settled gives what is sent in the end: nothing for a row that came and went.
func settled[V any](c change[V], old bool) (change[V], bool) {
	if !c.hasNew && !c.hasOld {
		return c, false
	}
	if !old {
		var none V
		c.old, c.hasOld = none, false
	}
	return c, true
}

// put writes a changed row, with the time of out, and sends the change on. at is the time of the
// record that caused it: held back, a delete has that time, as in Kafka Streams.
func (u *updates[K, V]) put(ctx processor.Context[K, change[V]], out processor.Record[K, change[V]], at time.Time) error {
	if u.cache == nil {
		if err := putNew(u.rows, out.Key, &out.Value, out.Timestamp); err != nil {
			return err
		}
		return ctx.Forward(out)
	}
	held, err := u.cache.Holds(out.Key)
	if err != nil {
		return err
	}
	if !held {
		// Read anew, and not taken from the operator: its function may have changed the row in place,
		// and the old value of a new row is the initializer's there.
		if err := getOld(u.rows, out.Key, &out.Value); err != nil {
			return err
		}
	}
	if err := putNew(u.rows, out.Key, &out.Value, out.Timestamp); err != nil {
		return err
	}
	if !out.Value.hasNew {
		out.Timestamp = at
	}
	return u.cache.Put(out)
}
