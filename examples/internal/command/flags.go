package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Parse reads the flags of a program. The first line of usage says how it is called. When a flag is wrong, or help is asked for,
// it says what there is to say on standard error, and ends the program.
func Parse(f *flag.FlagSet, usage string, args []string) {
	if code, done := parse(f, usage, args, os.Stderr); done {
		os.Exit(code)
	}
}

func parse(f *flag.FlagSet, usage string, args []string, stderr io.Writer) (code int, done bool) {
	f.Init(f.Name(), flag.ContinueOnError)
	f.Usage = func() {}     // all of it would stand below an error,
	f.SetOutput(io.Discard) // which nobody finds there
	switch err := f.Parse(args); {
	case err == nil:
		return 0, false
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		fmt.Fprintln(stderr, usage)
		f.PrintDefaults()
		return 0, true
	default:
		call, _, _ := strings.Cut(usage, "\n")
		fmt.Fprintf(stderr, "%s: %v\n%s\nIt explains itself with -h.\n", f.Name(), err, call)
		return 2, true
	}
}
