// Command shares says who used the CPU time in profiles that count wrote with -cpuprofile:
// the Kafka client, Tidemark, Pebble, the garbage collector, the rest of Go's runtime.
//
//	shares PROGRAM PROFILE...
//
// A sample belongs to whoever is innermost on its stack, so that memory that is copied or
// allocated for Pebble counts as Pebble's. Threads of C libraries are not in a Go profile:
// librdkafka's own are what lacks to the CPU time that the program reported.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: shares PROGRAM PROFILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shares:", err)
		os.Exit(1)
	}
}

func run(files []string, out io.Writer) error {
	cmd := exec.Command("go", append([]string{"tool", "pprof", "-traces"}, files...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	shares, err := read(string(text))
	if err != nil {
		return err
	}
	shares.print(out)
	return nil
}

// shares is the time of each owner.
type shares map[string]time.Duration

// separator begins each stack in pprof's text; the innermost function stands first, behind
// the time.
const separator = "-----------+"

func read(text string) (shares, error) {
	s := shares{}
	var spent time.Duration
	var stack []string
	add := func() {
		if len(stack) > 0 {
			s[owner(stack)] += spent
		}
		stack = stack[:0]
	}
	inStacks := false
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, separator):
			add()
			inStacks = true
		case !inStacks || len(fields) == 0 || strings.HasSuffix(fields[0], ":"): // head, blank, label
		case len(stack) > 0:
			stack = append(stack, strings.TrimSpace(line))
		default:
			d, err := time.ParseDuration(fields[0])
			if err != nil {
				return nil, fmt.Errorf("pprof's line %q begins with no time: %w", line, err)
			}
			spent = d
			stack = append(stack, strings.Join(fields[1:], " "))
		}
	}
	add()
	return s, lines.Err()
}

// owners are tried in this order on each function, innermost first.
var owners = []struct {
	name  string
	parts []string // of a function's name
}{
	{"garbage collector", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.gcStart", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"Pebble", []string{"github.com/cockroachdb/"}},
	{"client (franz-go)", []string{"github.com/twmb/franz-go/"}},
	{"client (confluent)", []string{"github.com/confluentinc/"}},
	{"Tidemark", []string{"github.com/tidemark-streams/", "main."}},
}

func owner(stack []string) string {
	for _, function := range stack {
		for _, o := range owners {
			if slices.ContainsFunc(o.parts, func(part string) bool { return strings.HasPrefix(function, part) }) {
				return o.name
			}
		}
	}
	return "Go's runtime"
}

func (s shares) print(out io.Writer) {
	var names []string
	var total time.Duration
	for name, d := range s {
		names = append(names, name)
		total += d
	}
	slices.SortFunc(names, func(a, b string) int { return int(s[b] - s[a]) })
	for _, name := range names {
		fmt.Fprintf(out, "%-20s %6.2f s %5.1f %%\n", name, s[name].Seconds(), 100*s[name].Seconds()/total.Seconds())
	}
}
