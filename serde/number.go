package serde

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Int64 is the serde of int64: 8 bytes, big-endian, two's complement, as Java's
// LongSerializer writes them. The bytes of negative numbers sort behind those of positive ones.
var Int64 Serde[int64] = int64Serde{}

// Int32 is the serde of int32: 4 bytes, big-endian, two's complement, as Java's
// IntegerSerializer writes them. The bytes of negative numbers sort behind those of positive ones.
var Int32 Serde[int32] = int32Serde{}

// Float64 is the serde of float64: the 8 bytes of the IEEE 754 form, big-endian, as Java's
// DoubleSerializer writes them. Every NaN is written as the same one; 0 and -0 differ.
var Float64 Serde[float64] = float64Serde{}

type int64Serde struct{}

func (int64Serde) Name() string { return "int64" }

func (int64Serde) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Serde) Decode(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, lengthError(len(b), 8)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

type int32Serde struct{}

func (int32Serde) Name() string { return "int32" }

func (int32Serde) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Serde) Decode(b []byte) (int32, error) {
	if len(b) != 4 {
		return 0, lengthError(len(b), 4)
	}
	return int32(binary.BigEndian.Uint32(b)), nil
}

// canonicalNaN is the one NaN that Java writes. Go's own, math.NaN(), has other bits, and two
// NaNs of different bytes would be two keys.
const canonicalNaN = 0x7ff8000000000000

type float64Serde struct{}

func (float64Serde) Name() string { return "float64" }

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	bits := math.Float64bits(v)
	if math.IsNaN(v) {
		bits = canonicalNaN
	}
	return binary.BigEndian.AppendUint64(dst, bits), nil
}

func (float64Serde) Decode(b []byte) (float64, error) {
	if len(b) != 8 {
		return 0, lengthError(len(b), 8)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

func lengthError(got, want int) error {
	return fmt.Errorf("%d bytes instead of %d (was the data written with another serde?)", got, want)
}
