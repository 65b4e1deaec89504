// Package statestore keeps the state of one task: the data of its stores, and with the
// data, in the same batch, how far it has come: changelog offsets, source positions, stream
// time and the id of the commit. A crash at any moment leaves what some commit left,
// never a mixture.
//
// # Use
//
//	s, err := statestore.Open(dir, statestore.Options{})
//	err = s.Register(statestore.Spec{Name: "counts", Kind: statestore.KindKeyValue, Changelog: "app-counts-changelog"})
//	counts, err := s.KeyValue("counts")
//
//	value, _, ok, err := counts.Get(key)      // sees its own writes
//	err = counts.Put(key, newValue, timestamp) // in memory
//
//	sealed, err := s.Seal(statestore.Progress{ID: id, StreamTime: now, Positions: positions})
//	for change := range sealed.Changes() { ... } // produce to the changelog, on another goroutine
//	err = s.Commit(sealed, map[string]statestore.Offset{"counts": statestore.At(offset + 1)})
//	s.Release(sealed)
//
// Three verbs are kept apart: Commit makes writes part of the state, atomically with
// everything that says what they contain; Sync makes what is committed survive a crash of
// the machine (a background sync does so every second); Clear forgets a store. After a
// commit that failed elsewhere, Drop takes the state back to the last commit.
//
// # Owns
//
// The database directory, with one Pebble database for all stores of the task, its layout
// (docs/format.md), the overlay of uncommitted writes and the cache of clean values.
//
// Rows are kept by an engine (internal/engine): Pebble on disk, or memory, for a whole task
// store ([Options.Engine]) or one store of it ([Spec.InMemory]). A user's own store takes the
// place of the engine for one store ([StateStore]). The metadata is in the task's database in
// any case, and it is written first.
//
// Every kind of store is rows under the same overlay. What makes windows, sessions and
// versions of them is in internal/kinds: their keys, their segments, what has expired.
//
// # Never
//
// Knows Kafka, a serde, or another task. Writes anything uncommitted to the database. Ends
// or hangs the process when the disk does not work: the task store fails, with an error
// that says why and what to do ([ErrFailed]), and everything else goes on.
//
// # Called by
//
// task, the embedded form, and tools that inspect or migrate.
//
// # Goroutines
//
// A task store has an owner, one goroutine at a time: it alone may call Register,
// KeyValue, Window, Session, Versioned and all their methods, Seal, Release, Drop, Mute, Restore, RestoreRuns (and its RunRestore), Complete, Clear, Adopt, Logged, Doubt, Load, LoadSorted,
// RecordImport, Warm, Trim, DirtyBytes, NeedsCommit, CacheBytes and Close. Commit, and the methods of a [Sealed], may
// be called by one other goroutine at the same time. Sync, Snapshot, StampOwner, and everything
// that only tells a fact (CommitID, Positions, StreamTime, offsets, Stores, Err, Failed), by any. The one
// goroutine of its own is a background sync, only while there is something to sync; Close
// waits for it. A [RunRestore] has one while it writes a run, and its Close waits for that. A [View] has none, and may be used by several.
//
// # Invariants
//
//  1. Every batch that changes data holds a commit record that is true of the data after
//     it. A crash leaves a prefix of the batches.
//  2. What is acknowledged by Sync, by Close, or by a commit with SyncEveryCommit is never lost.
//  3. No key, bound or range that a user gives reaches the metadata or another store.
//  4. An offset is that of the next record, or absent, or unknown: never a magic number.
//  5. A store is complete only at the commit id of the record that says so; a restore or
//     clear that is not finished is visible as such after a crash.
//  6. Reads see the running interval, over the sealed one, over the database; a scan sees
//     the state at its beginning, and an error never looks like the end.
//  7. After the first failure of the database no call reaches it any more.
//  8. A store that is not in the database is complete only if it stands where the commit
//     record says; if not, it is restored from its changelog: from its start, where the store
//     is ahead and has a clock. One in memory never is complete at Open.
//  9. The caches of all task stores that share Resources keep to one budget, as soon as their
//     owners come by; no get or put waits for another task.
//  10. A store whose entries expire has a clock of its own, that is sealed, committed and
//     dropped with its writes. Nothing comes into the database that has expired by it.
//  11. Reading a directory ([OpenReadOnly], [SnapshotDir]) changes nothing in it, and neither
//     does opening one of a newer format.
//  12. All values of a registered store have its schema version, wherever its rows are kept, and
//     as a restore writes them.
package statestore
