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
// instead of waiting for it. What is left behind changes no file any more, and its lock is given back as soon as
// no operation of its is under way: the same process can open the directory again.
//
// Goroutines: a call that may block on Pebble's locks runs on a goroutine of its own and
// is left behind when the latch closes first ([Abandoned] counts the databases). Reads
// run on the caller's.
//
// Invariants:
//
//  1. After the latch is closed no call enters Pebble again, except one attempt to close, which waits for what is
//     inside: Pebble gives memory back that a write under way would still use.
//  2. No panic of Pebble's leaves this package, and none runs through code of Pebble's
//     that holds or has dropped its locks: errors that would make it panic there, and
//     Fatalf, park the goroutine instead.
//  3. Nobody waits for a parked goroutine: who calls Pebble on another goroutine waits for
//     the latch too; a Fatalf under a reader becomes an error.
//  4. An abandoned database gives its compaction slots back, and one that is not open yet
//     gets none.
//  5. An Open that may fail has nothing running in the background: what the log holds is
//     flushed by an Open of its own, see settle.go.
//  6. Every operation on files, of tables that are ingested and of checkpoints too, goes through the watch of
//     health.go: a disk that does not answer keeps nobody who closes.
//  7. One that is open for reading changes nothing in its directory.
package pebbledb
