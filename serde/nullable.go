package serde

import "errors"

// Nullable makes a serde of pointers out of s, for a type that has no nil of its own: a nil
// pointer is null, and any other has the encoding of what it points to.
//
//	ages := serde.Nullable(serde.Int64) // Serde[*int64]
//
// Its name is that of s, because its bytes are: null is not among them, so a store can change
// between the two and keep its data.
func Nullable[T any](s Serde[T]) Serde[*T] {
	if s == nil {
		return nil // and no panic before whoever is given it says where
	}
	return nullableSerde[T]{s}
}

type nullableSerde[T any] struct{ s Serde[T] }

var errNullAppended = errors.New("null cannot be appended to other bytes")

func (n nullableSerde[T]) Name() string { return n.s.Name() }

// Append gives nil, Kafka's null, for a nil pointer and a nil dst. Appended to anything else
// null would turn into an empty value, so that is an error.
func (n nullableSerde[T]) Append(dst []byte, v *T) ([]byte, error) {
	if v == nil {
		if dst != nil {
			return nil, errNullAppended
		}
		return nil, nil
	}
	return n.s.Append(dst, *v)
}

// Decode is the one that may be given null.
func (n nullableSerde[T]) Decode(b []byte) (*T, error) {
	if b == nil {
		return nil, nil
	}
	v, err := n.s.Decode(b)
	if err != nil {
		return nil, err
	}
	return &v, nil
}
