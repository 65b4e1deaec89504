package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// parse reads flags that may stand before, between and behind the positional arguments, and
// gives the latter: as many as there are names. done tells that the command is over, with the
// code; what was wrong has been said then.
func parse(f *flag.FlagSet, usage string, args []string, stderr io.Writer, names ...string) (rest []string, code int, done bool) {
	f.Usage = func() {}     // Parse would show all of it below an error,
	f.SetOutput(io.Discard) // where nobody finds the error
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			f.SetOutput(stderr)
			fmt.Fprint(stderr, usage)
			f.PrintDefaults()
			return nil, exitOK, true
		} else if err != nil {
			return nil, misused(f, usage, stderr, err.Error()), true
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	for i, name := range names {
		switch {
		case i >= len(rest):
			return nil, misused(f, usage, stderr, name+" is missing"), true
		case rest[i] == "": // an unset variable of a shell; a path would be the working directory
			return nil, misused(f, usage, stderr, name+" is empty"), true
		}
	}
	if len(rest) > len(names) {
		return nil, misused(f, usage, stderr, fmt.Sprintf("%q is one argument too many", rest[len(names)])), true
	}
	return rest, exitOK, false
}

// misused says what is wrong with the arguments, and how the command is called.
func misused(f *flag.FlagSet, usage string, stderr io.Writer, what string) int {
	call, _, _ := strings.Cut(usage, "\n")
	fmt.Fprintf(stderr, "tidemark %s: %s\n%s\nIt explains itself with -h.\n", f.Name(), errorLine(what), call)
	return exitFailed
}
