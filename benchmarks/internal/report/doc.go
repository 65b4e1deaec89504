// Package report is what the measured programs have in common: their flags, the CPU time
// they used, and the JSON lines they print.
//
// Owns: the command line that count and bare share, one line of progress a second on
// standard error and the final one on standard output, the CPU profile.
//
// Never: touches Kafka or a store, so that nothing of it is part of what is measured.
//
// Called by: the programs in benchmarks, from their main goroutine. A [Reporter] owns one
// goroutine, which [Reporter.Finish] ends.
//
// Invariants:
//
//  1. CPU seconds are those of the whole process, start and end included.
//  2. Standard output carries final lines and nothing else.
package report
