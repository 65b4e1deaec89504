package processor

import (
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
)

// receiver is the typed side of a node: where records come in. That every child of a node
// is a receiver of its types was checked by Build (P1).
type receiver[K, V any] interface {
	receive(r Record[K, V]) error
}

// receivers gives where a node's records go. A [Pass] among its children is left out: its own
// children stand in its place.
func receivers[K, V any](in *Instance, n *node) []receiver[K, V] {
	var out []receiver[K, V]
	for _, c := range n.children {
		if p, ok := in.runtime[c].(passing[K, V]); ok && p.passes() {
			out = append(out, p.behind()...)
		} else {
			out = append(out, in.runtime[c].(receiver[K, V]))
		}
	}
	return out
}

// sourceNode decodes records and sends them to its children.
type sourceNode[K, V any] struct {
	in       *Instance
	number   int
	key      serde.Serde[K]
	val      serde.Serde[V]
	decodeK  func(b []byte) (K, error)
	decodeV  func(b []byte) (V, error)
	children []receiver[K, V]
}

func newSourceNode[K, V any](in *Instance, n *node, key serde.Serde[K], val serde.Serde[V]) (any, error) {
	return &sourceNode[K, V]{in, in.number(n.name), key, val, decoder(in, key), decoder(in, val), receivers[K, V](in, n)}, nil
}

// decoder gives a serde's Decode; for one that can adopt bytes, its Adopt of a copy of them.
func decoder[T any](in *Instance, s serde.Serde[T]) func([]byte) (T, error) {
	a, ok := s.(serde.Adopter[T])
	if !ok {
		return s.Decode
	}
	return func(b []byte) (T, error) { return a.Adopt(in.copies.of(b)) }
}

func (s *sourceNode[K, V]) process(r *kafka.Record) (err error) {
	s.in.node = s.number
	rec := Record[K, V]{Timestamp: time.UnixMilli(s.in.clock.now), Headers: s.in.keep(r.Headers)}
	if r.Key == nil {
		rec.NullKey = !serde.HasNil[K]()
	} else if rec.Key, err = s.decodeK(r.Key); err != nil {
		return decodeError(r, s.key.Name(), serde.PartKey, err)
	}
	if r.Value == nil {
		rec.NullValue = !serde.HasNil[V]()
	} else if rec.Value, err = s.decodeV(r.Value); err != nil {
		return decodeError(r, s.val.Name(), serde.PartValue, err)
	}
	for _, c := range s.children {
		if err := c.receive(rec); err != nil {
			return err
		}
	}
	return nil
}

// headersAtOnce is how many headers get their memory together.
const headersAtOnce = 256

// keep copies a record's headers out of the poll's memory, which is used again: a processor may
// keep the record.
func (in *Instance) keep(headers []kafka.Header) []kafka.Header {
	n := len(headers)
	if n == 0 {
		return nil
	}
	if n > len(in.headers) {
		in.headers = make([]kafka.Header, max(n, headersAtOnce))
	}
	kept := in.headers[:n:n]
	in.headers = in.headers[n:]
	copy(kept, headers)
	return kept
}

func decodeError(r *kafka.Record, name string, part serde.Part, err error) error {
	return &serde.Error{Serde: name, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Part: part, Err: err}
}
