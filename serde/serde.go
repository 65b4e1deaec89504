package serde

// Serde encodes and decodes values of type T. Implementations must be safe for concurrent
// use, and must not change their format while data written with it exists.
type Serde[T any] interface {
	// Name identifies the format of the bytes, for example "int64" or "json:shop.Order". It
	// is kept with every store, so that opening a store with another serde than it was
	// written with is refused. It must stay the same as long as the bytes do.
	Name() string

	// Append appends the encoding of v to dst and returns the longer slice, as the built-in
	// append does. The bytes of dst up to its length are left as they are. Without an error
	// the result must not be nil, not even for an empty encoding appended to nil: nil is null.
	// With an error the result is of no meaning. v is neither changed nor kept.
	Append(dst []byte, v T) ([]byte, error)

	// Decode gives the value that b encodes. It must neither keep b, or a part of it, nor
	// change it: the bytes belong to a read buffer that is used again. b is never null.
	Decode(b []byte) (T, error)
}

// Adopter is a serde whose values can lie in the bytes that they are decoded from, such as strings.
// Where bytes are to be copied anyway, the copies of many records can then share an allocation.
type Adopter[T any] interface {
	Serde[T]
	// Adopt is Decode for bytes that are given away: nobody else will read or change them.
	Adopt(b []byte) (T, error)
}

// notNil gives dst, and an empty slice (which costs no allocation) for nil, to which an
// empty encoding can be appended without becoming null (S2).
func notNil(dst []byte) []byte {
	if dst == nil {
		return []byte{}
	}
	return dst
}
