// Package table is the memory of one task store: the writes that are not yet in the
// database and the clean values kept over commits, in one hash table.
//
// Owns: the bytes of keys and values in its arenas, the list of dirty entries, and what
// is known to be complete. Never: reads or writes a database, locks, starts a goroutine.
// Called by: statestore. A [Table] and its cursors belong to one goroutine, but for
// [Table.Stats]. A [Sealed] is built by that goroutine and may then be read by any number
// of them.
//
// There are two generations. New and touched entries live in the young one; when it has
// half of the budget, the old one is dropped whole and its memory used again. So there
// is no list per entry to keep, and no pointer in an entry: the garbage collector sees
// some dozens of objects, whatever the number of entries.
//
// The writes of a store that is scanned often are also in an [index] in key order; a scan
// reads it through a [Cursor]. Ranges are deleted without a look at the entries in them:
// each entry has the epoch of its write, each range that of its deletion.
//
// Invariants:
//
//  1. What is in the young generation is newer than what the old one says of the same key.
//  2. A generation is not dropped while it may hold a write that is not in the database.
//     (So a key that the table does not know has in the database the value that counts.)
//  3. A store is complete only while every one of its keys in the database is in the table.
//  4. A deleted range is remembered until it is in the database and no entry is older than it.
//     An older entry in it is absent, whatever it says; an unknown key in it is absent until
//     it is in the database.
//  5. A slice given out is valid until the next call; the bytes of a [Sealed] never change
//     until it is recycled.
//  6. A cursor shows the interval as it was when it was opened. While one is open over an
//     index, no generation is dropped and no entry is written over: a Put writes a new one.
package table
