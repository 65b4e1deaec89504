// Package franz is the client that Tidemark uses unless told otherwise: franz-go behind
// the interfaces of package kafka, in pure Go.
//
//	app, err := streams.New(topology, streams.Config{Client: franz.Client{}, ...})
//
// Options of franz-go that package kafka does not know (a rack, a dialer, hooks) go into
// [Client.Options]; they are applied last and win.
//
// Owns: one franz-go client per part (a [kafka.Transactional] replaces its own at every
// Init), the requests that franz-go has no public call for (offset commits under a given
// member, the end of a transaction that holds offsets only), and the one table that maps
// Kafka's error codes to classes (errors.go).
//
// Never: subscribes a data consumer, commits an offset outside a transaction, resets an
// offset by itself, purges a topic from a client (franz-go would forget sequence numbers
// and positions with it), repeats on another connection a request that could then take
// effect twice.
//
// Called by: task and streams through package kafka. A part's methods run on the caller's
// goroutine; delivery reports run on franz-go's promise goroutine, Changed on the one that
// manages the group. A Membership owns one goroutine of its own, which its Close ends.
//
// Invariants:
//
//  1. Every error that leaves the package is a *kafka.Error, made by link.fail.
//  2. A Send reserves room for all of its records before it hands over the first: an
//     error means that nothing was handed over.
//  3. A transaction is committed only if every delivery of it succeeded, and "committed"
//     is believed only if the broker answered an EndTxn.
//  4. TxnOffsetCommit, and an EndTxn that is sent here, go out once per answer: a copy
//     that arrives late could land in the next transaction. No answer means doubt, and
//     only a new producer epoch (Init) ends doubt.
//  5. A snapshot of the membership holds the generation with which its partitions were
//     given, never a newer one.
//  6. A record of franz-go's that was fetched is used by nobody once Poll has given it back (see
//     recordPool). The bytes of its key, value and headers are never used again.
package franz
