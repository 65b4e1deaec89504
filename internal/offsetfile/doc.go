// Package offsetfile reads and formats the text form that all offset files of Kafka Streams 0.10
// to 4.4 have: `.checkpoint`, `.checkpoint_<store>` and `<store>.position`.
//
// A line with the version, 0; a line with the number of entries; and the entries, each a topic, a
// partition and an offset. What the offset means (the last record applied, or the next one) depends
// on the file, and is not known here.
//
// Owns: the format, what of it is refused, and the names that such files get when they are set aside. Never: opens a file; guesses: what is not certain is
// an error. Called by: migration, for files of other programs, and statestore, for the file of a
// user's own store, which may also be one that another program has left. No goroutine.
//
// Invariants:
//
//  1. Everything that Kafka Streams ever wrote is read. What it would read and nobody can be sure
//     of is refused: a topic partition that occurs twice, a negative partition, digits that are not
//     ASCII.
//  2. Memory is bounded by the size of the file, never by a number that stands in it.
package offsetfile
