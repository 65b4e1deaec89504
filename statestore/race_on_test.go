//go:build race

package statestore

// every: the race detector makes a run some ten times slower, so tests that try every
// write of a script try every fifth.
const every = 5
