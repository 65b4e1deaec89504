// Package testbroker gives tests their brokers: an embedded one always, a real one where
// it was started for them.
//
// Owns: the environment variables TIDEMARK_TEST_BROKERS (addresses of a real Apache Kafka,
// separated by commas), TIDEMARK_REQUIRE_REAL (not empty: its absence is a failure) and
// TIDEMARK_TEST_FULL (not empty: every client on every broker), and which tests take which client
// where without it.
//
// Never: starts a real broker (a script of the project does), or is imported by anything
// but tests.
//
// Called by: tests of every package that talks to Kafka, on their own goroutine.
//
// Invariant: brokers are shared by tests that run at the same time, so names come from
// Broker.Name.
package testbroker
