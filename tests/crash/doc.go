// Package crash holds the crash tests of the whole: the word count example, built as users
// build it, is killed with SIGKILL at random moments and at every step of a commit and of a
// restore, started again, and its counts are compared with counts made without Tidemark.
//
//	go test ./tests/crash                          # 20 kills and more, about two minutes
//	go test ./tests/crash -crash.kills 500         # kills of each random test
//	go test ./tests/crash -crash.seed 42           # the run of a failure, from its printed seed
//
// Owns: the oracle (a count of the input's bytes), what is checked after the last kill: the
// printed counts, the content of every task's store, and the output topic: each count of a
// word once and in order under exactly-once, none missing and the true one last under
// at-least-once.
//
// Never: kills a broker. The embedded one is a child of the program and closes when that is
// killed; with TIDEMARK_TEST_BROKERS the same tests run on a real one, with fewer kills.
//
// Called by: go test. One goroutine for each run reads the program's standard error and ends
// with the program.
//
// Invariants: every random choice comes from the printed seed, but for the moments at which
// the operating system runs the processes; a test that is about processing fails if its kills
// did not hit it.
package crash
