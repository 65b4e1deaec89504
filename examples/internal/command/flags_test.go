package command

import (
	"flag"
	"io"
	"strings"
	"testing"
)

const usage = "usage: example [flags]\n\nMore about it."

func flags() (f *flag.FlagSet, n *int) {
	f = flag.NewFlagSet("example", flag.ExitOnError)
	return f, f.Int("n", 3, "how many")
}

// Of a wrong flag the first line tells, then comes how the program is called, and nothing more.
func TestWrongFlag(t *testing.T) {
	for args, says := range map[string]string{
		"--repeat x": "example: flag provided but not defined: -repeat\n",
		"-n x":       "example: invalid value \"x\" for flag -n: parse error\n",
		"-n":         "example: flag needs an argument: -n\n",
	} {
		f, _ := flags()
		var out strings.Builder
		code, done := parse(f, usage, strings.Fields(args), &out)
		if want := says + "usage: example [flags]\nIt explains itself with -h.\n"; code != 2 || !done || out.String() != want {
			t.Errorf("%s: code %d, done %v, it says %q, want %q", args, code, done, out.String(), want)
		}
	}
}

func TestHelp(t *testing.T) {
	f, _ := flags()
	var out strings.Builder
	code, done := parse(f, usage, []string{"-h"}, &out)
	if code != 0 || !done || !strings.HasPrefix(out.String(), usage+"\n") || !strings.Contains(out.String(), "how many (default 3)") {
		t.Errorf("code %d, done %v, it says %q", code, done, out.String())
	}
}

func TestFlagsAreRead(t *testing.T) {
	f, n := flags()
	if _, done := parse(f, usage, []string{"-n", "5", "rest"}, io.Discard); done || *n != 5 || f.Arg(0) != "rest" {
		t.Errorf("done %v, n %d, rest %q", done, *n, f.Args())
	}
}
