// Package legacyfixture reads the fixtures of migration/testdata: state directories that real
// Kafka Streams applications left, and files that are wrong in some way, each with a manifest of
// what is true of it. See the README.md there.
//
// Owns: the form of the manifests, and how a directory is built again from one.
//
// Never: judges what a migration does; that is its callers'.
//
// Called by: tests of migration and of the command line. No goroutine.
//
// Invariants:
//
//  1. What a manifest does not say is an error or absent, never a guess.
package legacyfixture
