// Package filelock lets one process at a time own a directory.
//
// Owns: an exclusive flock on a file, and the text inside that says who holds it
// ([Holder]: process id, host, start time, and a word of the owner's choice).
//
// Never: waits for a lock (the caller decides whether waiting makes sense), starts a
// goroutine, deletes a lock file (a process that opened the old file would then hold a
// lock that nobody else sees).
//
// Called by: internal/statedir and internal/embeddedbroker, on any goroutine; a [Lock]
// itself is not safe for concurrent use.
//
// Invariants:
//
//  1. The kernel releases the lock when its process ends, however it ends. The text
//     is information and never decides anything about who holds the lock.
//  2. The text of the last holder stays in the file, so that the next one can see how
//     the last one ended ([Lock.Previous]).
package filelock
