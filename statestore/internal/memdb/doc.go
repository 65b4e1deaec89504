// Package memdb is a task store's engine in memory: an ordered tree that nobody changes.
//
// Owns: the rows, as long as the engine is open. Never: touches a file, starts a goroutine,
// makes a reader wait. Called by: statestore.
//
// A batch makes a new tree, which shares with the old one what it does not change, and
// puts it in the old one's place. So a reader takes the tree that is there and needs no
// lock, and a snapshot is that tree.
//
// Goroutines: any; batches wait for each other.
//
// Invariants:
//
//  1. A tree that was published is never written to, nor a key or value in it.
//  2. After the first failure (which only its user can report) or Close no call does anything.
package memdb
