// Package kfakefetch makes kfake answer fetches as Kafka does where transactions were aborted.
//
// Owns: one control function of a cluster.
//
// Never: changes what a reader is given but by its amount.
//
// Called by: whoever makes a cluster of kfake, before clients come; the function runs on the cluster's own goroutine.
//
// Invariants:
//
//   - F1: a response that holds batches of a partition names the transactions that were aborted in it.
package kfakefetch
