// Package golden runs what Apache Kafka Streams 4.3.1 did in its own test driver: topologies,
// inputs, and for every input the outputs, the dropped records and in the end the stores. Each
// case is built with package streams, runs in streamstest, and has to do the same.
//
//	go test ./tests/golden                              # all cases that can be built
//	go test ./tests/golden -run Cases/stateless         # one group
//	go test ./tests/golden -run Cases/table/filter -v   # one case
//	go test ./tests/golden -run Cases -golden.dir DIR   # other cases of the same form
//
// The form of the cases and their language are in testdata/README.md. A case that needs an
// operation which does not exist yet is skipped with the operation's name; TestCoverage says
// how many cases of each group run, so that none falls back to a skip in silence.
//
// Owns: the cases, and the reading of their language.
//
// Never: changes an expectation. Where Tidemark differs on purpose, the case is listed in
// differs, with the reason, and docs/divergence.md says it too.
//
// Called by: go test. It starts no goroutine.
//
// Invariants: every step of a case is compared, not only the last.
package golden
