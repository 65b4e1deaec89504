// Package statedir owns an application's directory on disk: <state dir>/<app id>.
//
//	tidemark.lock       who has the directory open: process id, host, start time
//	process-id          the UUID of this place in the group, kept over restarts
//	transactional-ids   every transactional id that was ever used from here, one a line
//	offsets-choice      what an operator chose for the next start; absent otherwise
//	begins-anew         all state was removed, and no transactional id used since; absent otherwise
//	0_0, 0_1, 1_0 ...   one directory for each task, owned by package statestore
//	0_1.corrupt-<time>  one that could not be used and was set aside, with the reason in it
//	.trash-<time>-0_1   one that is being removed
//
// Owns: the directory and its permissions (0700), the application lock, the process id,
// the list of transactional ids, and who in this process has leased which task.
//
// Never: reads a task's data, deletes anything but what [Dir.Clean] is told is old and
// [Dir.RemoveAll], waits for another process.
//
// Called by: streams and task. A [Dir] is safe for use by several goroutines; the
// package starts none.
//
// Invariants:
//
//  1. One process at a time has an application directory open; a second one gets an
//     error at once, which names the first.
//  2. A process id or transactional id that a caller was given, or handed in, is on
//     disk: written, synced, and its directory entry synced.
//  3. A crash at any point leaves files that the next Open reads: the process id is
//     written aside and renamed, and a torn last line of the list is an id that was
//     never used.
//  4. A task directory that is leased is not removed; one that is removed loses its name
//     first, so that nobody ever finds half of it.
package statedir
