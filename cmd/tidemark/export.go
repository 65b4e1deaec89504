package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tidemark-streams/tidemark/migration"
)

const exportUsage = `usage: tidemark export-checkpoint STATE_DIR [flags]

Writes the .checkpoint file of Kafka Streams into each task directory, with the offsets of the
task's stores, for programs that read such files. The data stays where it is. A store without
a known offset is written as -4. The application must not run.

Exit codes: 0 done, 1 a task's file could not be written, 2 could not run.

`

// exportedJSON is one task in the JSON form.
type exportedJSON struct {
	Task    string            `json:"task"`
	Path    string            `json:"path"`
	Entries []migration.Entry `json:"entries"`
	Error   string            `json:"error"`
}

func runExport(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o migration.Options
	var asJSON bool
	f := flag.NewFlagSet("export-checkpoint", flag.ContinueOnError)
	f.StringVar(&o.App, "app", "", "application `id` (default: the only one in STATE_DIR)")
	f.BoolVar(&asJSON, "json", false, "JSON instead of a table")
	rest, code, done := parse(f, exportUsage, args, stderr, "STATE_DIR")
	if done {
		return code
	}
	all, err := migration.Export(ctx, rest[0], o)
	if err == nil {
		err = writeExported(stdout, all, asJSON)
	}
	if err != nil {
		return cannot(stderr, "export-checkpoint", err)
	}
	for _, x := range all {
		if x.Err != nil {
			return exitProblems
		}
	}
	return exitOK
}

func writeExported(out io.Writer, all []migration.Exported, asJSON bool) error {
	if asJSON {
		list := make([]exportedJSON, 0, len(all))
		for _, x := range all {
			j := exportedJSON{Task: x.Task, Path: x.Path, Entries: append([]migration.Entry{}, x.Entries...)}
			if x.Err != nil {
				j.Error = x.Err.Error()
			}
			list = append(list, j)
		}
		return writeJSON(out, map[string]any{"tasks": list})
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTORE\tCHANGELOG PARTITION\tWRITTEN\tREASON")
	for _, x := range all {
		if x.Err != nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\t%s\n", line(x.Task), errorLine(x.Err.Error()))
			continue
		}
		for _, e := range x.Entries {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", line(x.Task), line(e.Store), changelogOf(e), numberOr(e.Raw, "-"), line(e.Reason))
		}
	}
	return w.Flush()
}
