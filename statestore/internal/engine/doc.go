// Package engine is what a task store asks of the thing that keeps its rows: an ordered
// set of keys that takes batches.
//
// Owns: the interfaces [Engine], [Reader], [Iter] and [Batch]. Never: knows what keys and
// values mean, which of them are metadata, or what an offset is; a batch with data and the
// commit record is one [Engine.Apply]. Called by: statestore. Implemented by: pebbledb (on
// disk), memdb (in memory), and statestore for a user's own store.
//
// Goroutines: an Engine is used by several at a time; an [Iter] and a [Batch] belong to one.
// An implementation has no goroutine of its own that Close does not wait for (but for what
// pebbledb abandons).
//
// Invariants, of every implementation:
//
//  1. A batch is applied as a whole or not at all, also over a crash, and a crash leaves
//     the result of a prefix of the batches.
//  2. The first failure is kept: every later call returns it at once and does nothing, but
//     for [Iter.Close], [Snapshot.Close] and [Engine.Close].
//  3. An iterator or snapshot sees what was there when it was made, and nothing else.
//  4. Keys and values that are given are copied; those that are given out are the engine's
//     and valid until the next move, where nothing else is said.
package engine
