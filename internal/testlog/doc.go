// Package testlog gives a test a log that it can read while others write to it.
//
// Owns: the text of each [Log], in memory.
//
// Never: is imported by anything but tests; drops or changes what was written.
//
// Called by: tests, and through them whatever logs or prints, on any goroutine.
//
// Invariant: what a Write was given is in the text, in one piece, when it returns.
package testlog
