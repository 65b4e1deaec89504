// Package scratch makes the topics of one run and deletes them after it.
//
// Owns: topics with names of its own, on a broker that is there for measuring.
//
// Never: touches another topic, but to ask how many partitions it has.
//
// Called by: the programs in benchmarks, on their main goroutine.
//
// Invariants:
//
//  1. Topics are there, on every broker, when they are used: a client would wait for them.
package scratch
