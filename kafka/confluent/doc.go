// Package confluent is the Kafka client that runs on confluent-kafka-go v2 (librdkafka).
// It is chosen with one line:
//
//	streams.Config{Client: confluent.Client{}}
//
// It needs cgo. Without it the package still compiles, and every constructor says so.
//
// Owns: the librdkafka instances behind the interfaces of package kafka, and what it
// takes to use them safely (see the invariants).
//
// Never: subscribes a data consumer, commits an offset outside a transaction, writes to
// standard error (librdkafka's lines go to [kafka.Settings].Logger), retries a commit
// after its context ended, calls Flush.
//
// Called by: streams and task, through the interfaces of package kafka.
//
// Goroutines: a consumer has none of its own but the one that forwards log lines; its
// caller is the one goroutine that may use it. A producer has one that serves delivery
// reports, and calls every report. A membership has one that owns Poll, the rebalance
// callback and Close of its librdkafka consumer. A transaction call runs in a goroutine
// that a watchdog looks after. Each ends in Close; the library's own (poller, log queue)
// end with it.
//
// Invariants, beside those of package kafka:
//
//	C1  One goroutine at a time is inside a librdkafka consumer; nothing is called after
//	    Close (a Poll after Close is a segmentation fault, not an error).
//	C2  A librdkafka consumer with a fatal error is never closed (Close would not
//	    return): it is left behind and counted.
//	C3  A librdkafka producer is destroyed only when no call is inside it any more.
//	C4  Delivery reports are counted per partition, in order; a failed one makes every
//	    Send fail that has a record without a fate in that partition. Hence no Flush: it
//	    waits in steps of 100 ms, and polls beside the binding's own poller, so that
//	    reports would change places.
//	C5  A commit or an offset commit without an answer is in doubt, and the producer
//	    instance behind it is never used again.
//	C6  Start offsets go into the assign; no source partition is ever paused or sought in
//	    librdkafka.
//
// What librdkafka cannot do, and this package says instead of hiding it:
//
//   - A transaction does not survive that the broker refuses its offsets for an old
//     generation. SendOffsets refuses them itself when the membership already knows a newer
//     one; in the moment in between it reports ClassIllegalGeneration too, but repeating the
//     call inside the same transaction gives ClassAbortable.
//   - A record with timestamp 0 cannot be written (librdkafka takes 0 for "now"); Send
//     refuses it by name.
//   - [kafka.Settings].TLS can be used as far as OpenSSL can be told the same (client
//     certificates, InsecureSkipVerify); own roots go into Client.Config.
package confluent
