// Package failpoint lets a crash test kill its own process, really and at once, at a named
// step, or stop it there.
//
// Owns: the one armed point of the process.
//
// Never: does anything when none is armed, which costs one atomic load.
//
// Called by: the steps whose crash is tested, and by nobody to arm one but tests: through the
// environment of a child process.
//
// Any goroutine may hit a point.
//
// Invariants:
//
//  1. A point that is hit does not return: the process is dead as after kill -9. One that stops returns when the
//     process was let go on (SIGCONT).
package failpoint
