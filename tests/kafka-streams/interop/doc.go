// Package interop takes one application from Kafka Streams to Tidemark and back, on a real
// broker: the same application id, topics, stores and group.
//
//	go test ./tests/kafka-streams/interop    # TIDEMARK_TEST_BROKERS names a broker, see scripts/kafka
//
// Owns: Interop.java, the application on Kafka Streams, and the same one on Tidemark, as an App and (one half of
// it) as a consumer program with each door of the embedded form; the
// oracle, a third count of the same input; the comparison of all records of the changelogs,
// by the bytes of key and value and by timestamp, with the oracle and with each other. The
// jars, and a compiler for machines that have only a runtime, come from Maven (pom.xml) into
// the cache folder of scripts/kafka.
//
// Never: changes a state directory of Kafka Streams itself; one test lets a consumer program start on it.
//
// Called by: go test. A goroutine reads the Java program's output, and ends with it.
//
// Invariants:
//
//  1. Whoever runs, every count is right and each history of a key is that of its input.
//  2. The group is empty whenever the application changes hands; the tests that break this
//     rule assert that the newcomer is refused.
package interop
