// Package command is what the examples share as programs: how they read their flags, and how they end.
//
// Owns: the words and the exit code of a flag that is wrong, and of a run that has failed or was interrupted.
//
// Never: shows how to use Tidemark. What a program would do itself stands in the examples.
//
// Called by: the examples, from their main goroutine.
//
// Invariants:
//
//   - X2: The first line of what a program prints about an error is the error, and no page of help follows.
package command
