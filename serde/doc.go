// Package serde turns typed keys and values into bytes and back.
//
// A [Serde] has a name, appends the encoding of a value to a buffer, and decodes one:
//
//	b, err := serde.Int64.Append(nil, 42) // 00 00 00 00 00 00 00 2a
//	v, err := serde.Int64.Decode(b)       // 42
//
// There are serdes for strings, bytes and numbers ([String], [Bytes], [Int32], [Int64],
// [Float64]), whose bytes are those of Apache Kafka's Java serializers, for JSON ([JSON])
// and for protobuf messages ([Proto], and [ProtoV1] for those of the old
// github.com/golang/protobuf). Your own needs the three methods of [Serde] and no registration.
//
// # Null
//
// Kafka knows null keys and null values (a null value deletes), and they differ from empty
// ones. Null is not a serde's business: the framework writes null for a nil pointer, slice,
// map or interface ([IsNil]) and gives the zero value for a null it reads, without asking
// the serde. A type without nil, such as int64, cannot say null; [Nullable] makes a serde
// of *int64 out of one of int64.
//
// # For the maintainer
//
// Owns: the interface, the built-in serdes, the test for nil, the shape of an [*Error].
//
// Never: reads or writes Kafka or a store, knows topics other than by name in an error,
// starts a goroutine.
//
// Called by: processor, statestore's typed views, task and streams, on the goroutine that
// owns the record. Serdes are values without state, safe for concurrent use.
//
// Invariants, which hold for the built-in serdes and are asked of a user's:
//
//	S1  Decode keeps nothing of its argument and changes none of it. (Adopt of an Adopter may keep
//	    it: the bytes are given away.)
//	S2  Append keeps the len(dst) bytes it was given, and its result is never nil when the
//	    error is: nil would be null. (The one exception is the nil pointer of Nullable.)
//	S3  Equal values have equal encodings, in every process and release: keys are found, and
//	    records partitioned, by their bytes. (Protobuf promises it for one build only: see Proto.)
//	S4  Decode of what Append wrote gives an equal value.
//	S5  A name stands for one format of bytes. It is stored with the data.
//	S6  No input makes a serde panic.
package serde
