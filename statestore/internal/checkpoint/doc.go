// Package checkpoint reads and writes the checkpoint file of one store: how far a store that
// keeps no offsets itself has followed its changelog partition.
//
// Owns: the order of steps that makes a file change as a whole, or sets it aside. Never: knows
// a store. Called by: statestore. No goroutine.
//
// The file has the format of Kafka Streams, see internal/offsetfile, and may be one that Kafka
// Streams or another program has left. An offset is that of the last record applied, not the next.
//
// Invariants:
//
//  1. A file is there whole, or as it was before: temporary file, sync, rename, sync of the
//     directory.
//  2. What cannot be read is an error, never an offset.
//  3. What another program has left is renamed or copied before its place is taken, never lost.
package checkpoint
