// Command tidemark looks after state directories: what is in them, whether it is whole, and
// how to move it.
//
// Owns: the command line. Never: knows a format or a layout; the packages that own them do.
// Called by: people and scripts. People get tables, scripts get JSON (-json) and exit codes.
//
// Goroutine: the main one. An interrupt cancels the context of the running command.
//
// Invariants: a command that only looks never writes; results go to standard output and
// nothing else does.
package main
