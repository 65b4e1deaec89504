// Package fdlimit tells how many files this process may have open.
//
// Owns: the question to the system. Never: changes the limit; the Go runtime has raised it as
// far as this user may. Called by: statestore and offsetcache, on any goroutine.
//
// Invariant: a limit that cannot be known is said to be unknown, never guessed.
package fdlimit
