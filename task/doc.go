// Package task is the life of a task: opened, restored, processed, committed, closed.
//
// Users meet it in what it tells ([Status]), in the bounds of a commit interval ([Limits]), in the
// errors of a take-over ([ErrStoreAhead], [ErrOffsetsLost], [ErrForeignCommit], [ErrTopicChanged],
// [ErrInputGone], [ErrRecordsGone]), in
// the operator's choices about them ([Conflict]) and
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
// Called by: streams, which starts workers with tasks and stops them; embedded, which has a worker
// without a loop ([Hosted]), whose owner is whoever holds the host's lock.
//
// Goroutines: one worker goroutine owns its tasks and everything under them, so that the
// path of a record takes no lock. One commit goroutine per worker exists while an interval
// is being committed; it owns the transactional producer and the sealed overlays. Tasks with much to
// restore, or to write into their changelogs again, belong to a goroutine beside, with a consumer of its own, until they are ready. A restore lends its
// consumer to one goroutine that polls ahead of it. One that
// purges repartition topics may exist beside; it owns nothing. [Worker.Status] may be called by anyone.
//
// Invariants:
//
//	T1  Nothing uncommitted is ever in a database: a task's writes reach it after the
//	    transaction that holds their changelog records and the source offsets was committed.
//	T2  Every commit is a transaction, also one that moves only offsets, in both guarantees.
//	T3  A transaction begins at the commit: no user code runs inside an open one.
//	T4  At most one interval is sealed. Transactional records of the running interval wait
//	    for its own transaction. A piece of a changelog that is written again takes the place of a sealed interval.
//	T5  A task commits with the member id under which it was started, or not at all.
//	T6  Changelog offsets come from delivery reports only.
//	T7  A task processes its first record only after the take-over order is through.
//	T8  Every commit carries all source partitions of its tasks, moved or not.
//	T9  A take-over commits (epoch, 0) before its first record: no epoch has two writers.
//	T10 Only what is on the disk is purged from a repartition topic.
//	T11 A store without a changelog is at the positions in the database, which a replay takes to the
//	    group's offsets before any record behind those is processed. Those never go back.
//	T12 A task belongs to one goroutine at a time: the one beside that restores it hands it over when the
//	    group's offsets were read again behind the restore, and nobody commits for it before.
package task
