// Package task is the life of a task: opened, restored, processed, committed, closed.
//
// Users meet it in what it tells ([Status]), in the bounds of a commit interval ([Limits]), in the
// errors of a take-over ([ErrStoreAhead], [ErrOffsetsLost], [ErrForeignCommit], [ErrTopicChanged]) and
// in the formats that other programs may read: [DecodeMetadata] for committed offsets,
// [FindChangeHeader] for changelog records.
//
// # For the maintainer
//
// Owns: the [Worker] and the tasks under it; the commit of a worker as a state machine; the
// order of steps at a take-over; restore; the commit id in the group's metadata and in the
// changelog header; what each class of error leads to ([Decide]).
//
// Never: decides where a task runs (that is given), creates topics, imports a Kafka client.
//
// Called by: streams, which starts workers with tasks and stops them.
//
// Goroutines: one worker goroutine owns its tasks and everything under them, so that the
// path of a record takes no lock. One commit goroutine per worker exists while an interval
// is being committed; it owns the transactional producer and the sealed overlays. [Worker.Status]
// may be called by anyone.
//
// Invariants:
//
//	T1  Nothing uncommitted is ever in a database: a task's writes reach it after the
//	    transaction that holds their changelog records and the source offsets was committed.
//	T2  Every commit is a transaction, also one that moves only offsets, in both guarantees.
//	T3  A transaction begins at the commit: no user code runs inside an open one.
//	T4  At most one interval is sealed. Transactional records of the running interval wait
//	    for its own transaction.
//	T5  A task commits with the member id under which it was started, or not at all.
//	T6  Changelog offsets come from delivery reports only.
//	T7  A task processes its first record only after the take-over order is through.
//	T8  Every commit carries all source partitions of its tasks, moved or not.
package task
