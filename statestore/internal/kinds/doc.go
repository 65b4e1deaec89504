// Package kinds makes window, session and versioned stores out of ordered rows.
//
// Owns: the form of their keys and values (docs/format.md), segments, retention, what each
// fetch shows, and what a write of a version does to the versions around it. Never: knows a
// database, an overlay, a commit or Kafka; keeps rows itself; starts a goroutine. Called by:
// statestore, on the goroutine of a task store's owner; it gives the [Rows].
//
// Every row key begins with a segment, 8 bytes big-endian: the time of the entry (a window's
// start, a session's end, the end of a version's validity) divided by the segment interval.
// So a store is emptied of what has expired by deleting one range of keys, whatever it holds;
// what an entry's key begins with decides nothing. Behind the segment stands the key as it is
// in the changelog, which is Kafka Streams'.
//
// Two limits follow from the store's own stream time T, the largest time ever written to it:
// reads do not show what is at or before T - retention, exact to the millisecond; writes are
// refused, and rows removed, only in segments of which no time is behind that limit. So the
// same rows are shown whenever segments are removed, and a late write inside the retention is kept.
//
// Invariants:
//
//  1. A row that reads show is in no segment before [Layout.Oldest].
//  2. A fetch sees the rows at its beginning, also those that it reaches last.
//  3. An entry of another key is never shown, whatever bytes the keys are made of.
//  4. The versions of a key do not overlap, and two of them begin at the same time never.
//  5. A version put is logged in one row of the log area; the rows that it moves are not logged.
//  6. Bytes that do not decode are an error, never a panic.
package kinds
