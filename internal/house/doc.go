// Package house holds the rules of this code base that a compiler does not know, as
// tests over its source: which package may import which, and why; where the clients'
// and the engine's libraries may appear; the form of package documentation; that every
// exported name is documented, and that none comes or goes unnoticed (docs/api.txt); the
// form of JSON names; that tests wait for conditions and not for time.
//
// Owns: the tables of those rules. Whoever adds a package adds it to the table in
// imports_test.go, which is where the picture of the layers in docs/ARCHITECTURE.md is
// enforced.
//
// Never: is imported, runs outside of tests, changes a file (but docs/api.txt when "make api" asks for it).
//
// Called by: go test, on the test's goroutine; it starts none.
//
// Invariants:
//
//  1. A rule's failure text says what to do and the reason of the rule.
//  2. Every rule is tried on source that breaks it, so that it cannot pass by seeing
//     nothing.
package house
