// Package embedded tests the embedded form as its users have it: a loop of their own around each
// client's consumer, on a broker, in this process and in processes that are killed.
//
// Owns: the loops, and the oracle: every record has a count, which says whether it was processed before.
//
// Never: looks into a store but through the loop.
//
// Called by: go test. Each loop has a goroutine of its own, or is a child process of the test.
//
// Invariant: the oracle sees only what a reader of the output topic sees.
package embedded
