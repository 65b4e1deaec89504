package serde

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// JSON gives the serde of T as JSON text, by the rules of [encoding/json], without a line
// end. '<', '>' and '&' are written as themselves, not escaped for HTML: other languages do
// not escape them either, and a key must have the same bytes in all of them to be found in
// the same partition. Unknown fields are ignored when reading.
//
// Its name is "json:" and the type with its package's name, for example "json:shop.Order";
// JSON[Order] and JSON[*Order] write the same and have the same name.
//
// The JSON text null decodes to nil where T has nil, and the framework treats it as a null.
// Maps are written in the order of their keys, so that equal values have equal bytes; a
// MarshalJSON of one's own has to see to that itself.
func JSON[T any]() Serde[T] {
	return jsonSerde[T]{name: "json:" + strings.TrimLeft(reflect.TypeFor[T]().String(), "*")}
}

type jsonSerde[T any] struct{ name string }

func (s jsonSerde[T]) Name() string { return s.name }

func (s jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	// An Encoder, because json.Marshal has no way to leave HTML alone, and would hand out a copy.
	w := appendWriter{notNil(dst)}
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(&v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(w.b, []byte{'\n'}), nil
}

func (s jsonSerde[T]) Decode(b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		var zero T // not the half that was decoded
		return zero, err
	}
	return v, nil
}

// appendWriter is an io.Writer that appends.
type appendWriter struct{ b []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}
