package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
)

const cleanUsage = `usage: tidemark clean STATE_DIR --app A [flags]

Removes the directories of tasks that were not owned on this host for some time, by what each
directory records of it, never by the times of files. The application must not run. A
directory that does not say when it was owned, or that holds legacy state, stays.

Exit codes: 0 done, 1 a directory could not be judged or removed, 2 could not run.

`

// cleanFlags are the arguments of the command.
type cleanFlags struct {
	dir, app       string
	olderThan      time.Duration
	dryRun, asJSON bool
}

// cleanedJSON is one task directory in the JSON form.
type cleanedJSON struct {
	Task      string  `json:"task"`
	Path      string  `json:"path"`
	LastOwned *string `json:"last_owned"`
	Remove    bool    `json:"remove"`
	Reason    string  `json:"reason"`
}

func runClean(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, code, done := parseClean(args, stderr)
	if done {
		return code
	}
	all, err := clean(ctx, c)
	if err == nil {
		err = writeCleaned(stdout, all, c)
	}
	if err != nil {
		return cannot(stderr, "clean", err)
	}
	for _, x := range all {
		if x.Err != nil {
			return exitProblems
		}
	}
	return exitOK
}

func parseClean(args []string, stderr io.Writer) (c cleanFlags, code int, done bool) {
	f := flag.NewFlagSet("clean", flag.ContinueOnError)
	f.StringVar(&c.app, "app", "", "application `id`")
	f.DurationVar(&c.olderThan, "older-than", 10*time.Minute, "how long ago the task must have been owned for the last `time`")
	f.BoolVar(&c.dryRun, "dry-run", false, "only say what would be removed")
	f.BoolVar(&c.asJSON, "json", false, "JSON instead of a table")
	rest, code, done := parse(f, cleanUsage, args, stderr, "STATE_DIR")
	if done {
		return c, code, true
	}
	switch {
	case c.app == "":
		return c, misused(f, cleanUsage, stderr, "--app is missing: it says whose directories are removed"), true
	case c.olderThan < 0:
		return c, misused(f, cleanUsage, stderr, fmt.Sprintf("--older-than %v is negative", c.olderThan)), true
	}
	c.dir = rest[0]
	return c, exitOK, false
}

func clean(ctx context.Context, c cleanFlags) (all []statedir.Cleaned, err error) {
	t, err := lookAt(c.dir)
	if err != nil {
		return nil, err
	}
	// Only one that is there: opening would make it.
	a, err := t.choose(c.app)
	if err != nil {
		return nil, err
	}
	if t.single {
		return nil, fmt.Errorf("%s is one task's directory: name the state directory, or the application's", c.dir)
	}
	d, err := statedir.Open(filepath.Dir(a.Path), a.ID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Clean(ctx, statedir.CleanOptions{OlderThan: c.olderThan, DryRun: c.dryRun, LastOwned: func(dir string) (time.Time, error) {
		return offsetcache.LastOwned(dir, statestore.ReadOptions{})
	}})
}

func writeCleaned(out io.Writer, all []statedir.Cleaned, c cleanFlags) error {
	if c.asJSON {
		list := make([]cleanedJSON, 0, len(all))
		for _, x := range all {
			j := cleanedJSON{Task: x.Task, Path: x.Path, Remove: x.Remove, Reason: reasonOf(x, c)}
			if !x.LastOwned.IsZero() {
				last := x.LastOwned.UTC().Format(time.RFC3339)
				j.LastOwned = &last
			}
			list = append(list, j)
		}
		return writeJSON(out, map[string]any{"tasks": list, "dry_run": c.dryRun})
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tLAST OWNED\tDONE\tREASON")
	for _, x := range all {
		last := "-"
		if !x.LastOwned.IsZero() {
			last = x.LastOwned.UTC().Format(time.RFC3339)
		}
		done := "kept"
		if x.Remove {
			done = map[bool]string{false: "removed", true: "would be removed"}[c.dryRun]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Task, last, done, errorLine(reasonOf(x, c)))
	}
	return w.Flush()
}

func reasonOf(x statedir.Cleaned, c cleanFlags) string {
	switch {
	case x.Err != nil:
		return x.Err.Error()
	case x.Remove:
		return fmt.Sprintf("not owned for %v", c.olderThan)
	}
	return fmt.Sprintf("owned less than %v ago", c.olderThan)
}
