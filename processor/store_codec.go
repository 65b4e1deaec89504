package processor

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// ErrNotConnected marks the use of a store from a processor it was not connected to.
var ErrNotConnected = errors.New("not connected")

// codec is what every typed key-value store is made of: a store of bytes and two serdes.
type codec[K, V any] struct {
	raw   *statestore.KeyValue
	clock *recordClock
	key   serde.Serde[K]
	val   serde.Serde[V]
	name  string
	err   error // why the store cannot be used at all

	kbuf, vbuf []byte
}

// Name is the store's name.
func (c *codec[K, V]) Name() string { return c.name }

func (c *codec[K, V]) keyBytes(key *K) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	if serde.IsNil(key) {
		return nil, fmt.Errorf("store %s: the key is null", c.name)
	}
	b, err := c.key.Append(c.kbuf[:0], *key)
	if err != nil {
		return nil, c.serdeError(c.key.Name(), serde.PartKey, err)
	}
	c.kbuf = b
	return b, nil
}

func (c *codec[K, V]) get(key K) (value V, ms int64, ok bool, err error) {
	k, err := c.keyBytes(&key)
	if err != nil {
		return value, 0, false, err
	}
	b, ms, ok, err := c.raw.Get(k)
	if !ok || err != nil {
		return value, 0, false, err
	}
	value, err = c.decodeValue(b)
	return value, ms, err == nil, err
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

func (c *codec[K, V]) serdeError(name string, part serde.Part, err error) error {
	return fmt.Errorf("store %s: %w", c.name, &serde.Error{Serde: name, Partition: -1, Offset: -1, Part: part, Err: err})
}

func (c *codec[K, V]) put(key K, value V, at time.Time) error {
	if serde.IsNil(&value) {
		return c.delete(key, at)
	}
	k, err := c.keyBytes(&key)
	if err != nil {
		return err
	}
	v, err := c.val.Append(c.vbuf[:0], value)
	if err != nil {
		return c.serdeError(c.val.Name(), serde.PartValue, err)
	}
	if v == nil {
		v = emptyBytes // an empty value is not null
	}
	c.vbuf = v
	ms, err := c.time(at)
	if err != nil {
		return err
	}
	return c.raw.Put(k, v, ms)
}

// time gives the timestamp of a write in milliseconds.
func (c *codec[K, V]) time(at time.Time) (int64, error) {
	ms := at.UnixMilli()
	if ms < 0 {
		return 0, fmt.Errorf("write to store %s: %w %d ms; give the record, or the write, a time since 1970", c.name, ErrNegativeTimestamp, ms)
	}
	return ms, nil
}

func (c *codec[K, V]) delete(key K, at time.Time) error {
	k, err := c.keyBytes(&key)
	if err != nil {
		return err
	}
	ms, err := c.time(at)
	if err != nil {
		return err
	}
	return c.raw.Delete(k, ms)
}

func (c *codec[K, V]) scan(from, to *K) iter.Seq2[TimestampedEntry[K, V], error] {
	return func(yield func(TimestampedEntry[K, V], error) bool) {
		lo, hi, err := c.bounds(from, to)
		if err != nil {
			yield(TimestampedEntry[K, V]{}, err)
			return
		}
		for e, err := range c.raw.Range(lo, hi) {
			t := TimestampedEntry[K, V]{Timestamp: time.UnixMilli(e.Timestamp)}
			if err == nil {
				t.Key, err = c.decodeKey(e.Key)
			}
			if err == nil {
				t.Value, err = c.decodeValue(e.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// bounds encodes the ends of a range into memory of their own: the codec's buffer is used
// again while the iteration runs.
func (c *codec[K, V]) bounds(from, to *K) (lo, hi []byte, err error) {
	if c.err != nil {
		return nil, nil, c.err
	}
	if from != nil {
		if lo, err = c.bound(from); err != nil {
			return nil, nil, err
		}
	}
	if to != nil {
		if hi, err = c.bound(to); err != nil {
			return nil, nil, err
		}
	}
	return lo, hi, nil
}

func (c *codec[K, V]) bound(key *K) ([]byte, error) {
	b, err := c.keyBytes(key)
	return append([]byte{}, b...), err // not nil, which is an open end
}
