// Package storetest is the conformance suite of stores: [Run] for every kind of store on an
// engine, or on a user's own [statestore.StateStore] under it, and [RunStateStore] for what
// such a store promises by itself.
//
//	func TestMyStore(t *testing.T) {
//		storetest.RunStateStore(t, func(t *testing.T) storetest.Opener { return openMine(t.TempDir()) })
//		storetest.Run(t, func(t *testing.T) storetest.Env { return storetest.Env{Store: openMine(t.TempDir())} })
//	}
//
// Owns: what is checked. Never: knows an engine, or looks behind the public interface of
// statestore. Called by: tests, on the test's goroutine; it starts one of its own, to write
// while a loop reads, and waits for it.
//
// Invariants:
//
//  1. A store that fails a check says what was done and what was expected, with the seed of
//     random histories.
//  2. Everything is closed at the end of a test.
package storetest
