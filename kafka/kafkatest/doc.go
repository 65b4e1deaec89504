// Package kafkatest is the conformance suite of the kafka package: whoever implements
// [kafka.Client] runs it, and whoever reads it learns what the interfaces promise.
//
//	func TestConformance(t *testing.T) {
//		kafkatest.Run(t, franz.Client{}, kafkatest.Embedded(t))
//	}
//
// Owns: [Run], the [Broker] it runs against, an embedded cluster ([Embedded]) with a
// [Network] that can lose answers.
//
// Never: looks at a client's own types or error codes. What a client did is read back
// from the broker with a client of the suite's own (franz-go, used directly).
//
// Called by: the tests of kafka/franz and kafka/confluent, each on an embedded and on a
// real broker. It runs on the test's goroutine; goroutines that it starts end with the
// test.
//
// Invariants:
//
//  1. Every test uses topics, groups and transactional ids of its own, so that the suite
//     can run beside others, again and again, against one broker.
//  2. A test that needs a fault to be injected runs only where Broker.Cluster is set.
//  3. Nothing waits for a fixed time: conditions are polled up to a deadline.
package kafkatest
