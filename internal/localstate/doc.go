// Package localstate is what both ways in, streams and embedded, do with an application's state directory: taking over
// what another program left there, reading how far each task is, opening a task's store or setting it aside when it is damaged,
// snapshots of what is open, removing what was not used for long.
//
// Owns: the order of these steps, and what the log says of them.
//
// Never: decides which task runs here; deletes what is damaged.
//
// Called by: streams and embedded, [Adopt] and [Read] at start on the goroutine that starts, [Leases] on workers'
// goroutines (its Snapshot on any), [Clean] on a goroutine of the caller's, which it keeps until its context ends.
//
// Invariants:
//
//	L1  No single directory stops the start: what cannot be read is reported, and its task has no state here.
//	L2  What is damaged is renamed before the task begins anew in its place.
package localstate
