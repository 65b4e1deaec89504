package serde_test

import (
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
)

func TestNullable(t *testing.T) {
	s := serde.Nullable(serde.Int64)
	if s.Name() != "int64" {
		t.Errorf("name %q, want that of the inner serde", s.Name())
	}
	if b, err := s.Append(nil, nil); b != nil || err != nil {
		t.Errorf("append of nil to nil = %#v, %v; want nil", b, err)
	}
	if _, err := s.Append([]byte{}, nil); err == nil {
		t.Error("null was appended to an empty slice: it would be read as an empty value")
	}
	if v, err := s.Decode(nil); v != nil || err != nil {
		t.Errorf("decode of null = %v, %v; want nil", v, err)
	}
	if v, err := s.Decode([]byte{}); err == nil {
		t.Errorf("decode of an empty value = %v, want the error of int64", v)
	}
	if serde.Nullable[int64](nil) != nil {
		t.Error("a serde around nil is not nil: it would panic at its first use instead of being reported where it is given")
	}
	if v, err := serde.Nullable(serde.String).Decode([]byte{}); v == nil || *v != "" || err != nil {
		t.Errorf("decode of an empty string = %v, %v; want a pointer to it", v, err)
	}
}

func TestNullableTwice(t *testing.T) {
	s := serde.Nullable(serde.Nullable(serde.Int64))
	if v, err := s.Decode(nil); v != nil || err != nil {
		t.Errorf("decode of null = %v, %v; want nil", v, err)
	}
	if b, err := s.Append(nil, nil); b != nil || err != nil {
		t.Errorf("append of nil = %v, %v; want nil", b, err)
	}
}
