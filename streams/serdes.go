package streams

import "github.com/tidemark-streams/tidemark/serde"

// Serdes are the serdes of the records that a node reads or gives. See [With].
type Serdes[K, V any] struct {
	key   serde.Serde[K]
	value serde.Serde[V]
	name  []Named
}

// With gives the serdes of keys and values:
//
//	lines := streams.Stream(b, "lines", streams.With(serde.String, serde.String))
//
// A null key or value does not come to a serde. Functions over types that have no nil, such
// as string, are not called for null values (see "Nulls" in docs/ARCHITECTURE.md), and get a
// null key as the zero value. A topic whose deletes a function is to see, or whose missing
// keys it is to tell from empty ones, is read with types that have nil:
//
//	streams.With(serde.Nullable(serde.String), serde.Nullable(serde.Int64))
func With[K, V any](key serde.Serde[K], value serde.Serde[V]) Serdes[K, V] {
	return Serdes[K, V]{key: key, value: value}
}

// Named gives the node that is made with the serdes a name of its own:
//
//	streams.Process(in, newDedupe, streams.With(serde.String, serde.String).Named("dedupe"), seen)
func (s Serdes[K, V]) Named(name string) Serdes[K, V] {
	s.name = append(s.name[:len(s.name):len(s.name)], Named(name))
	return s
}

// names describes the serdes for messages.
func (s Serdes[K, V]) names() string {
	return "[" + serdeName(s.key) + ", " + serdeName(s.value) + "]"
}

func serdeName[T any](s serde.Serde[T]) string {
	if s == nil {
		return "nil"
	}
	return s.Name()
}
