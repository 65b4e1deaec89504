// Package watch looks at an application from outside: at what its Kafka client is asked to do,
// and at the records that go through it.
//
// Owns: a [Client] around another one, and the [Gaps] between the records of one worker.
//
// Never: changes what is asked or answered.
//
// Called by: the programs in benchmarks, which give the client to the application. Its
// functions run on the application's goroutines, so they do next to nothing.
//
// Invariants:
//
//  1. A Client watches one application with one worker, which has one consumer for its sources.
package watch
