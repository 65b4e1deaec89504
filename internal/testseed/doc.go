// Package testseed gives a test random numbers that can be had again.
//
// Owns: the environment variable TIDEMARK_TEST_SEED, and the line that a failing test
// prints about its seed.
//
// Never: is imported by anything but tests; gives two calls of one test the same
// numbers unless the seed was asked for.
//
// Called by: tests, on any goroutine; the generator that it returns belongs to one.
//
// Invariant: the same seed gives the same numbers, on every machine.
package testseed
