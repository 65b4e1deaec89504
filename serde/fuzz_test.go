package serde_test

import (
	"bytes"
	"testing"

	"github.com/tidemark-streams/tidemark/serde"
	"google.golang.org/protobuf/types/known/structpb"
)

// stable asks of any bytes: decoding does not panic or change them, and what can be decoded is
// encoded to bytes that decode and encode to themselves.
func stable[T any](t *testing.T, s serde.Serde[T], b []byte) {
	t.Helper()
	given := bytes.Clone(b)
	v, err := s.Decode(given)
	if !bytes.Equal(given, b) {
		t.Fatalf("%s: decode changed %x to %x", s.Name(), b, given)
	}
	if err != nil {
		return
	}
	first, err := s.Append(nil, v)
	if err != nil || first == nil {
		t.Fatalf("%s: decoded %x to %#v, which cannot be appended: %v", s.Name(), b, v, err)
	}
	again, err := s.Decode(first)
	if err != nil {
		t.Fatalf("%s: wrote %x, which cannot be decoded: %v", s.Name(), first, err)
	}
	second, err := s.Append(nil, again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%s: %x became %x, then %x, %v", s.Name(), b, first, second, err)
	}
}

// exact asks in addition that nothing is lost: what decodes is encoded to the same bytes.
func exact[T any](t *testing.T, s serde.Serde[T], b []byte) {
	t.Helper()
	stable(t, s, b)
	if v, err := s.Decode(b); err == nil {
		if got, err := s.Append(nil, v); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%s: %x came back as %x, %v", s.Name(), b, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "\x00", "1234", "12345678", "\xff\xf8\x00\x00\x00\x00\x00\x01", "null", `{"id":"a","tags":["b"],"next":{}}`,
		`{"raw":"AAE=","counts":{"z":1,"a":-2}}`, "\x0a\x01a\x10\xac\x02", "\x22\x05\x0a\x01a\x10\x01", "\x0a\x07\x0a\x01k\x12\x02\x08\x00", "\x2a\x00\x48\x07"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		exact(t, serde.String, b)
		exact(t, serde.Bytes, b)
		exact(t, serde.Int64, b)
		exact(t, serde.Int32, b)
		stable(t, serde.Float64, b) // the many NaNs become one
		stable(t, serde.JSON[order](), b)
		stable(t, serde.JSON[any](), b)
		stable(t, serde.JSON[[]byte](), b)
		stable(t, serde.Nullable(serde.String), append([]byte{}, b...))
		stable(t, serde.Proto[*structpb.Struct](), b)
		stable(t, serde.ProtoV1[*oldOrder](), b)
	})
}
