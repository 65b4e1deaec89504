// Package embedded gives a consumer loop that a program already has crash-safe state, one store set
// for each partition, with the offsets inside.
//
// Start with the door of your client: embedded/confluent for confluent-kafka-go, embedded/franz for
// franz-go. It makes the consumer from your own configuration, is its rebalance callback, and
// has Process:
//
//	err := host.Process(message, func(t *embedded.Task) error {
//		s := seen.In(t) // the same handle as in a processor
//		...
//	})
//
// What the function writes and the position behind the message are committed together or not at
// all. When it returns an error, nothing since the last commit stays, and the consumer is set back
// to there: the message comes again. To leave a message out, return nil.
//
// # For the maintainer
//
// Owns: the [Host]: which partitions are assigned, being restored, here, or gone; the state directory's
// lock; the admin client; the one-node topology in which a task calls the user's function.
//
// Never: imports a Kafka client, polls, or joins a group: the door's consumer does.
//
// Called by: the doors, and through them the user's loop, from any goroutine; one at a time
// works (the Host's lock). It starts one goroutine that looks at the commit triggers, one that looks at the group's offsets, one that looks whether the input topics exist, one that tells when
// no partition comes, until one does, one that removes old
// directories, and one for each assignment under way; Close waits for them.
//
// Invariants:
//
//	E1  A record above the position is taken only when every record that was handed to Process before
//	    it, at or above the position, was processed: what is dropped must come again first.
//	E2  A partition is fetched only after its take-over is through, from the position that found.
//	E3  A commit goes out under the member id under which its tasks were taken over.
//	E4  When the callback of a revoke returns, the partition's store is closed.
//	E5  No call into the client is made under the lock when the client may be in a callback that waits for it.
//	E6  Of partitions that are assigned by hand, each has a transactional id of its own, the same in every process: who
//	    is fenced has lost the partition and stops.
//	E7  What the host tells (Err, Ready, Status, StoreStats) waits for nobody. Commit, Close and a revoke wait for a broker no longer than
//	    they may; a worker whose reload was cut short so processes and commits nothing until it is done again.
//	E8  Offsets that somebody else has committed are replaced by those of the state before a partition is let go of, as far as
//	    they are seen; then the host stops.
//	E9  In debug mode, a use of a task or of its stores outside the call they were given to is refused by looking at
//	    atomics alone, before anything else is touched.
package embedded
