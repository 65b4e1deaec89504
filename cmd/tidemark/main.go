package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Exit codes of every command.
const (
	exitOK       = 0 // done, nothing to complain about
	exitProblems = 1 // done, and something was found that a person should look at
	exitFailed   = 2 // could not be done, or was called wrongly
)

// command is one verb of the program. It writes results to stdout, everything else to
// stderr, and gives the exit code.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// commands is every verb, in the order of the help text. Each stands in a file of its name.
func commands() []command {
	return slices.Concat(storeCommands(), startCommands(), groupCommands())
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what does not look at the context
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitFailed
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage(stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "tidemark: there is no command %q\n\n", args[0])
	usage(stderr)
	return exitFailed
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: tidemark COMMAND [arguments]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-18s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nEach command explains itself with -h. Exit codes: 0 fine, 1 something was found, 2 could not run.\n")
}
