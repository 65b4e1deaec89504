// Package pebbledb is Pebble, made safe to live with: it cannot end or hang the process.
//
// Owns: one Pebble database per [DB], its failed latch, what many databases share
// ([Resources]: block cache, file cache, compaction slots, sync slots). Never: knows what
// the keys mean. Called by: statestore.
//
// Left alone, Pebble exits the process on some errors (its logger's Fatalf), panics on
// others with its locks in disorder (which may end the process whatever recovers), retries
// a broken background job for ever, and may accept writes after its log could not be
// written. Here the first of these closes a latch:
// every later call returns the first cause at once, and Close leaves the database behind
// instead of waiting for it.
//
// Goroutines: a call that may block on Pebble's locks runs on a goroutine of its own and
// is left behind when the latch closes first ([Abandoned] counts the databases). Reads
// run on the caller's.
//
// Invariants:
//
//  1. After the latch is closed no call enters Pebble again, except one attempt to close.
//  2. No panic of Pebble's leaves this package, and none runs through code of Pebble's
//     that holds or has dropped its locks: errors that would make it panic there, and
//     Fatalf, park the goroutine instead.
//  3. Nobody waits for a parked goroutine: who calls Pebble on another goroutine waits for
//     the latch too; a Fatalf under a reader becomes an error.
//  4. An abandoned database gives its compaction slots back.
package pebbledb
