package streams

import (
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// Why a record was dropped. Few and constant: they label a metric.
const (
	nullKey   = "null key"
	nullValue = "null value"
	lateRow   = "late row of a versioned table"
)

// missing tells whether a function may not be called with r, because the value is a null of a
// type that has no nil; reason says so. It is "" in the common case, which must cost nothing.
//
// A null key does not keep a function from being called: it is given as the zero value. Input
// topics without keys are the usual case, and key functions are what gives them one.
func missing[K, V any](r *processor.Record[K, V]) (reason string) {
	if r.NullValue && missingValue(r) {
		return nullValue
	}
	return ""
}

func missingValue[K, V any](r *processor.Record[K, V]) bool {
	return r.NullValue && !serde.HasNil[V]() && !r.HasValue()
}
