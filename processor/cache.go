package processor

import (
	"fmt"
	"runtime/debug"

	"github.com/tidemark-streams/tidemark/serde"
)

// DefaultCacheEntries is the default of [Caching.MaxEntries].
const DefaultCacheEntries = 50_000

// Caching says which tables hold their updates back until the commit. The zero value: those that
// say so themselves.
type Caching struct {
	// All: every table does that does not say otherwise.
	All bool
	// MaxEntries is how many keys one table of one task holds back at most; at more it sends all of
	// them on before the commit. 0 = DefaultCacheEntries.
	MaxEntries int
}

// Cache holds back what a node would forward until the task commits, and then forwards the last
// record of each key: it is the forwarding half of Kafka Streams' record cache. The rows themselves
// are in the node's store at once. It is for operators of the DSL, lives as long as the instance, and
// belongs to its goroutine.
type Cache[K, V any] struct {
	ctx   *nodeContext[K, V]
	key   serde.Serde[K]
	merge func(earlier, later V) V
	emit  func(V) (V, bool)
	max   int

	held        map[string]int // place in entries, by encoded key
	entries     []heldRecord[K, V]
	first, last int // the order of the last updates; none: empty
	buf         []byte
}

// heldRecord is a record with the context that its processing had.
type heldRecord[K, V any] struct {
	Record[K, V]
	meta       RecordMetadata
	inRecord   bool
	prev, next int
}

const none = -1

// NewCache gives the node of ctx a cache; it is called in the node's Init. merge gives the value that
// stands for two successive updates of a key, emit the value that is forwarded, or false for a
// record that need not be: nothing has come of its updates.
func NewCache[K, V any](ctx Context[K, V], key serde.Serde[K], merge func(earlier, later V) V, emit func(V) (V, bool)) (*Cache[K, V], error) {
	n, ok := ctx.(*nodeContext[K, V])
	if !ok {
		return nil, fmt.Errorf("a cache needs the context of its node, not a %T", ctx)
	}
	c := &Cache[K, V]{ctx: n, key: key, merge: merge, emit: emit, max: n.in.env.Caching.MaxEntries, held: map[string]int{}, first: none, last: none}
	if c.max <= 0 {
		c.max = DefaultCacheEntries
	}
	n.in.caches = append(n.in.caches, c) // Init is called in the order of addition: parents first
	return c, nil
}

// CachesAll tells whether tables that do not say otherwise are to cache.
func CachesAll[K, V any](ctx Context[K, V]) bool {
	n, ok := ctx.(*nodeContext[K, V])
	return ok && n.in.env.Caching.All
}

// Holds tells whether an update of a key is held back.
func (c *Cache[K, V]) Holds(key K) (bool, error) {
	if err := c.encode(key); err != nil {
		return false, err
	}
	_, ok := c.held[string(c.buf)]
	return ok, nil
}

func (c *Cache[K, V]) encode(key K) (err error) {
	if c.buf, err = c.key.Append(c.buf[:0], key); err != nil {
		return &serde.Error{Serde: c.key.Name(), Partition: -1, Offset: -1, Part: serde.PartKey, Err: err}
	}
	return nil
}

// Put holds a record back, in the place of an earlier one of its key and behind all others. When
// there are too many, all are forwarded at once.
func (c *Cache[K, V]) Put(r Record[K, V]) error {
	if err := c.encode(r.Key); err != nil {
		return err
	}
	in := c.ctx.in
	i, ok := c.held[string(c.buf)]
	if ok {
		r.Value = c.merge(c.entries[i].Value, r.Value)
		c.unlink(i)
	} else {
		i = len(c.entries)
		c.entries = append(c.entries, heldRecord[K, V]{})
		c.held[string(c.buf)] = i
	}
	c.entries[i] = heldRecord[K, V]{Record: r, meta: in.meta, inRecord: in.inRecord, prev: c.last, next: none}
	if c.last == none {
		c.first = i
	} else {
		c.entries[c.last].next = i
	}
	c.last = i
	if len(c.entries) > c.max {
		return c.flush()
	}
	return nil
}

func (c *Cache[K, V]) unlink(i int) {
	e := &c.entries[i]
	if e.prev == none {
		c.first = e.next
	} else {
		c.entries[e.prev].next = e.next
	}
	if e.next == none {
		c.last = e.prev
	} else {
		c.entries[e.next].prev = e.prev
	}
}

// flush forwards what is held back, each record in the context in which it was put: a processor
// behind the table sees the time, the headers and the metadata of the record that caused the row.
func (c *Cache[K, V]) flush() error {
	if len(c.entries) == 0 {
		return nil
	}
	in := c.ctx.in
	meta, inRecord, now, node := in.meta, in.inRecord, in.clock.now, in.node
	for i := c.first; i != none; i = c.entries[i].next {
		e := &c.entries[i]
		v, ok := c.emit(e.Value)
		if !ok {
			continue
		}
		e.Value = v
		in.meta, in.inRecord, in.clock.now, in.node = e.meta, e.inRecord, e.Timestamp.UnixMilli(), c.ctx.number
		if err := c.forward(e.Record); err != nil {
			return err // in.node stays where it happened
		}
	}
	in.meta, in.inRecord, in.clock.now, in.node = meta, inRecord, now, node
	// The memory is used again, but not what it points to.
	clear(c.held)
	clear(c.entries)
	c.entries, c.first, c.last = c.entries[:0], none, none
	return nil
}

// forward says of an error, or a panic of a user's code, at which row it happened: the record in
// process, if there is one, is another.
func (c *Cache[K, V]) forward(r Record[K, V]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("update of table %s, key %s: node %s: %w", c.ctx.name, keyText(r.Key), c.ctx.in.At(), err)
		}
	}()
	return c.ctx.Forward(r)
}

// keyText shows a key in a message.
func keyText(key any) string {
	switch key.(type) {
	case string, []byte:
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%v", key)
}

// flusher is the untyped side of a Cache.
type flusher interface{ flush() error }

// Flush forwards what tables with caching hold back, parents before children: what an update
// causes in a table behind is sent on in the same call. The task calls it before it seals, so that
// everything is in the commit of the records that caused it. An error names the table, the key and the
// node, and the instance is of no use any more.
func (in *Instance) Flush() error {
	for _, c := range in.caches {
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}
