// Package broker runs a small application against real brokers that are not well: one that
// cannot do transactions, one that allows too little, one that goes away.
//
//	go test ./tests/broker    # needs Java 17 and Maven
//
// Owns: the brokers, one for each kind of trouble, which it starts through scripts/kafka and
// kills; what an application must say and do then, with every client of the build.
//
// Never: uses the broker of TIDEMARK_TEST_BROKERS, which others share.
//
// Called by: go test. Without Java and Maven the tests are skipped, unless TIDEMARK_REQUIRE_REAL
// is set. Without cgo they run only where a real broker is asked for (that variable, or
// TIDEMARK_TEST_BROKERS): scripts/test runs the tests with cgo and without, and once is enough.
// Each running application has a goroutine, ended by its Close.
//
// Invariants:
//
//  1. A broker belongs to one test; its subtests share it, each with names of its own.
//  2. An error is checked for its class and for the words an operator needs.
//  3. Whatever the broker does, counts are checked against the input.
package broker
