// Package enginetest is what every engine of a task store must pass.
//
// Owns: the suite [Run]. Never: part of a program. Called by: the tests of memdb, pebbledb
// and statestore. It starts no goroutine that outlives a test.
//
// Invariant: the suite asks nothing that package engine does not say.
package enginetest
