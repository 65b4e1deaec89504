package processor

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/serde"
)

// sinkNode encodes records and gives them to the task.
type sinkNode[K, V any] struct {
	in     *Instance
	number int
	topic  string
	key    serde.Serde[K]
	val    serde.Serde[V]
}

func newSinkNode[K, V any](in *Instance, n *node, key serde.Serde[K], val serde.Serde[V]) (any, error) {
	return &sinkNode[K, V]{in, in.number(n.name), n.topic, key, val}, nil
}

func (s *sinkNode[K, V]) receive(r Record[K, V]) error {
	in := s.in
	from := in.node
	in.node = s.number
	if ms := r.Timestamp.UnixMilli(); ms < 0 {
		return fmt.Errorf("output to topic %s: %w %d ms; give the record a time since 1970 before it is forwarded", s.topic, ErrNegativeTimestamp, ms)
	}
	out := Output{Topic: s.topic, Timestamp: r.Timestamp, Headers: r.Headers}
	var err error
	if r.HasKey() {
		if out.Key, err = encode(s.key, &in.keyBuf, r.Key); err != nil {
			return s.encodeError(s.key.Name(), serde.PartKey, err)
		}
	}
	if r.HasValue() {
		if out.Value, err = encode(s.val, &in.valBuf, r.Value); err != nil {
			return s.encodeError(s.val.Name(), serde.PartValue, err)
		}
	}
	if err := in.env.Send(out); err != nil {
		return err
	}
	in.node = from
	return nil
}

func (s *sinkNode[K, V]) encodeError(name string, part serde.Part, err error) error {
	return &serde.Error{Serde: name, Topic: s.topic, Partition: -1, Offset: -1, Part: part, Err: err}
}

var emptyBytes = []byte{}

// encode writes into a buffer that is used again and again. What comes out is not nil, which
// would be null, whatever the serde did.
func encode[T any](s serde.Serde[T], buf *[]byte, v T) ([]byte, error) {
	b, err := s.Append((*buf)[:0], v)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return emptyBytes, nil
	}
	keepLonger(buf, b)
	return b, nil
}

// keepLonger keeps the longer memory for later. Most often it is the one that is kept already, and
// then nothing is written: see recordClock.
func keepLonger(kept *[]byte, b []byte) {
	if cap(b) > cap(*kept) {
		*kept = b
	}
}
