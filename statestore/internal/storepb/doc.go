// Package storepb holds the protobuf form of a task store's metadata records.
//
// Owns: the messages. Never: reads or writes a database; that is statestore's.
// Called by: statestore only.
//
// Invariant: a field number, once released, keeps its meaning (docs/format.md).
//
// To generate it again: protoc, and protoc-gen-go of the version that go.mod names for
// google.golang.org/protobuf, in the path.
package storepb

//go:generate protoc --go_out=. --go_opt=paths=source_relative store.proto
