// Package streamstest runs a topology in a test: without a broker, without a goroutine, with a
// clock that stands still until the test moves it. It is Kafka Streams' TopologyTestDriver.
//
//	d := streamstest.New(t, topology, streamstest.Config{})
//	lines := streamstest.Input(d, "lines", serde.String, serde.String)
//	counts := streamstest.Output(d, "counts", serde.String, serde.Int64)
//
//	lines.Pipe("", "to be or not to be", time.UnixMilli(0))
//	if got := streamstest.Map(counts); got["be"] != 2 { ... }
//
// A record that is piped in is processed before Pipe returns, with all that follows from it:
// what goes to an internal topic, or to a topic that the topology reads, comes back as a new
// record. Stores are reached through the handles that the processors use: seen.In(d). What goes
// wrong fails the test, unless it is inside [Driver.Try].
//
// # Where a driver is not an application
//
// As in Kafka Streams' driver, the whole topology is one task with one partition of every topic.
// So the sub-topologies share their stream time, and the records of all topics, those that come
// back included, are taken in the order of their timestamps. Every record is a commit of its own.
// Stores live in memory.
//
// # For the maintainer
//
// Owns: the order in which waiting records are taken, the mock clock, the topics in memory.
//
// Never: processes a record itself (processor.Instance does, as in a task), starts a goroutine,
// touches the disk or the network, imports package testing.
//
// Called by: users' tests, and tests/golden, which compares it with Kafka Streams.
//
// Goroutine: the test's own; a driver is not for several.
//
// Invariants:
//
//	D1  When a call returns, no record waits (but inside a batch), and all is committed (unless
//	    commits are manual).
//	D2  A failed driver stays failed: every later call reports the same error, and the stores
//	    show what was committed last.
//	D3  Outputs of a record that failed are never seen.
package streamstest
