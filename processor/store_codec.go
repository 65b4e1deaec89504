package processor

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
)

// codec is what every typed store is made of beside its store of bytes: two serdes.
type codec[K, V any] struct {
	access
	key serde.Serde[K]
	val serde.Serde[V]

	kbuf, vbuf []byte
}

func newCodec[K, V any](h declared[K, V], a access) codec[K, V] {
	return codec[K, V]{access: a, key: h.key, val: h.val}
}

// keyBytes encodes into a buffer that the next call uses again.
func (c *codec[K, V]) keyBytes(key *K) ([]byte, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if serde.IsNil(key) {
		return nil, fmt.Errorf("store %s: the key is null", c.name)
	}
	b, err := c.key.Append(c.kbuf[:0], *key)
	if err != nil {
		return nil, c.serdeError(c.key.Name(), serde.PartKey, err)
	}
	keepLonger(&c.kbuf, b)
	return b, nil
}

// ownKeyBytes encodes into memory of its own, for what outlives the next call.
func (c *codec[K, V]) ownKeyBytes(key *K) ([]byte, error) {
	b, err := c.keyBytes(key)
	return append([]byte{}, b...), err // not nil, which would be an open end of a range
}

// valueBytes encodes into a buffer that the next call uses again; nil is null.
func (c *codec[K, V]) valueBytes(value *V) ([]byte, error) {
	if serde.IsNil(value) {
		return nil, nil
	}
	b, err := c.val.Append(c.vbuf[:0], *value)
	if err != nil {
		return nil, c.serdeError(c.val.Name(), serde.PartValue, err)
	}
	if b == nil {
		return emptyBytes, nil // an empty value is not null
	}
	keepLonger(&c.vbuf, b)
	return b, nil
}

func (c *codec[K, V]) decodeKey(b []byte) (K, error) {
	k, err := c.key.Decode(b)
	if err != nil {
		return k, c.serdeError(c.key.Name(), serde.PartKey, err)
	}
	return k, nil
}

func (c *codec[K, V]) decodeValue(b []byte) (V, error) {
	v, err := c.val.Decode(b)
	if err != nil {
		return v, c.serdeError(c.val.Name(), serde.PartValue, err)
	}
	return v, nil
}

func (c *codec[K, V]) decode(key, value []byte) (k K, v V, err error) {
	if k, err = c.decodeKey(key); err == nil {
		v, err = c.decodeValue(value)
	}
	return k, v, err
}

func (c *codec[K, V]) serdeError(name string, part serde.Part, err error) error {
	return fmt.Errorf("store %s: %w", c.name, &serde.Error{Serde: name, Partition: -1, Offset: -1, Part: part, Err: err})
}

// now is the timestamp of the record in process. Calls look at it before they ask whether the store may be used.
func (c *codec[K, V]) now() time.Time {
	if c.stores.guard != nil && c.guarded() != nil {
		return time.Time{}
	}
	return time.UnixMilli(c.stores.clock.now)
}

// time gives the timestamp of a write in milliseconds.
func (c *codec[K, V]) time(at time.Time) (int64, error) {
	ms := at.UnixMilli()
	if ms < 0 {
		return 0, fmt.Errorf("write to store %s: %w %d ms; give the record, or the write, a time since 1970", c.name, ErrNegativeTimestamp, ms)
	}
	return ms, nil
}

// bounds encodes the ends of a range of keys into memory of their own: the codec's buffer is
// used again while the iteration runs. A null key is an open end.
func (c *codec[K, V]) bounds(from, to *K) (lo, hi []byte, err error) {
	if err := c.usable(); err != nil {
		return nil, nil, err
	}
	if lo, err = c.bound(from); err != nil {
		return nil, nil, err
	}
	hi, err = c.bound(to)
	return lo, hi, err
}

func (c *codec[K, V]) bound(key *K) ([]byte, error) {
	if key == nil || serde.IsNil(key) {
		return nil, nil
	}
	return c.ownKeyBytes(key)
}
