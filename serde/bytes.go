package serde

import "unsafe"

// String is the serde of strings: their bytes, which for text is UTF-8, as Java's
// StringSerializer writes it. Bytes that are not valid UTF-8 are kept as they are, both
// ways (Java would replace them).
var String Serde[string] = stringSerde{}

// Bytes is the serde of byte slices: the bytes themselves. Decode gives a copy, which the
// caller owns. A nil slice is null and does not come here; if it is appended all the same,
// it is an empty one.
var Bytes Serde[[]byte] = bytesSerde{}

type stringSerde struct{}

func (stringSerde) Name() string { return "string" }

func (stringSerde) Append(dst []byte, v string) ([]byte, error) {
	return append(notNil(dst), v...), nil
}

func (stringSerde) Decode(b []byte) (string, error) { return string(b), nil }

// Adopt makes the bytes themselves a string, which is allowed as long as nobody changes them.
func (stringSerde) Adopt(b []byte) (string, error) {
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

type bytesSerde struct{}

func (bytesSerde) Name() string { return "bytes" }

func (bytesSerde) Append(dst []byte, v []byte) ([]byte, error) {
	return append(notNil(dst), v...), nil
}

// Decode starts from an empty slice that is not nil: an empty value must not become null.
func (bytesSerde) Decode(b []byte) ([]byte, error) { return append([]byte{}, b...), nil }

// Adopt gives b without its spare capacity, which is not the caller's.
func (bytesSerde) Adopt(b []byte) ([]byte, error) { return notNil(b)[:len(b):len(b)], nil }
