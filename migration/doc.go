// Package migration takes over what an application left on disk before it used Tidemark:
// the offset files of Kafka Streams 0.10 to 4.4 and of Go applications that keep their state
// in the same way, and, where it can be read, the data beside them; and the tables of goka.
//
//	report, err := migration.Plan(ctx, stateDir, migration.Options{App: "app"})
//	for _, task := range report.Tasks { ... }           // what is there, and what would be done
//	report, err = migration.Apply(ctx, stateDir, options) // the same, done
//
// # Owns
//
// The formats of `.checkpoint`, `.checkpoint_<store>` and `<store>.position` files, the
// layouts of the directories they lie in, and the files named *.migrated and
// *.quarantined-* that it makes of them.
//
// # Never
//
// Guesses an offset, or believes one without a reason. Deletes an original. Stops because of
// one file: what is wrong with a file concerns the stores that it speaks of. Writes anything
// while it plans. Knows Kafka: that an offset lies in the log is checked when the task opens.
//
// # Called by
//
// streams at start, cmd/tidemark; each on a goroutine of its own choice, one call for an
// application's directory at a time.
//
// # Goroutines
//
// Plan and Apply work on several task directories at a time and wait for all of them before
// they return. Nothing of ours runs afterwards; behind a goka table goleveldb ends a goroutine
// of its own within a second.
//
// # Invariants
//
//  1. Inside, an offset is always that of the next record. Task files and positions hold the
//     last one, the global file holds the next: they are converted where they are read.
//  2. -4 means clean, at an unknown offset; a missing entry means nothing is known. Neither
//     is ever 0.
//  3. A store takes an offset only together with the data that it is the offset of, in one
//     durable step, and only if it has none of its own and never took one before.
//  4. Whatever is imported is on disk before its file is renamed; a kill at any point leaves
//     either the old state or the new one.
package migration
