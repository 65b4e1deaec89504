package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/tidemark-streams/tidemark/migration"
)

const migrateUsage = `usage: tidemark migrate STATE_DIR [flags]

Takes over what an application left before it used Tidemark: offsets in .checkpoint,
.checkpoint_<store> and <store>.position files, and the data beside them where it can be read
(one Pebble database per store, or a table of goka). RocksDB data cannot: those stores are
restored from their changelogs. Files are renamed to <name>.migrated; what lies beside RocksDB
data stays, the rest is removed at the next clean close of its task (not with --keep). The
application must not run.

Without a guarantee the files are read as those of an exactly-once application, whose offsets
are believed only with --clean-shutdown or when the file times prove a clean shutdown.

Exit codes: 0 all fine, 1 something was quarantined or needs a person, 2 could not run.

`

// migrateFlags are the arguments of the command.
type migrateFlags struct {
	dir              string
	dryRun, asJSON   bool
	options          migration.Options
	topicStorePairs  topicMap
	guaranteeAsGiven string
}

// topicMap is a flag that can be given several times: TOPIC=STORE.
type topicMap map[string][]string

func (m topicMap) String() string { return "" }

func (m topicMap) Set(pair string) error {
	topic, store, ok := strings.Cut(pair, "=")
	if !ok || topic == "" || store == "" {
		return fmt.Errorf("%q is not TOPIC=STORE", pair)
	}
	m[topic] = append(m[topic], store)
	return nil
}

func parseMigrate(args []string, stderr io.Writer) (m migrateFlags, code int, done bool) {
	m.topicStorePairs = topicMap{}
	f := flag.NewFlagSet("migrate", flag.ContinueOnError)
	f.StringVar(&m.options.App, "app", "", "application `id` (default: the only one in STATE_DIR)")
	f.StringVar(&m.guaranteeAsGiven, "guarantee", "", "what the application ran with: at-least-once or exactly-once")
	f.BoolVar(&m.options.CleanShutdown, "clean-shutdown", false, "the application was closed cleanly: believe its offsets")
	f.BoolVar(&m.dryRun, "dry-run", false, "only say what would be done; writes nothing")
	f.BoolVar(&m.asJSON, "json", false, "JSON instead of a table")
	f.BoolVar(&m.options.Keep, "keep", false, "never remove what was renamed to *.migrated")
	f.Var(m.topicStorePairs, "map", "`TOPIC=STORE`: the topic is the store's changelog; may be given several times")
	f.IntVar(&m.options.Jobs, "jobs", 0, "task `directories` at a time (default 4 per core)")
	rest, code, done := parse(f, migrateUsage, args, stderr, "STATE_DIR")
	if done {
		return m, code, true
	}
	m.dir, m.options.Map, m.options.Guarantee = rest[0], m.topicStorePairs, guaranteeOf(m.guaranteeAsGiven)
	return m, exitOK, false
}

// guaranteeOf also takes Kafka Streams' spellings; Options.Validate refuses the rest.
func guaranteeOf(s string) migration.Guarantee {
	switch s {
	case "at_least_once":
		return migration.AtLeastOnce
	case "exactly_once", "exactly_once_beta", "exactly_once_v2":
		return migration.ExactlyOnce
	}
	return migration.Guarantee(s)
}

func runMigrate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	m, code, done := parseMigrate(args, stderr)
	if done {
		return code
	}
	var telling sync.Mutex
	m.options.OnProgress = func(p migration.Progress) {
		if !p.Done {
			telling.Lock()
			defer telling.Unlock()
			fmt.Fprintf(stderr, "task %s, store %s: %d records, %d MiB (files: %d MiB)\n", line(p.Task), line(p.Store), p.Records, p.Bytes>>20, p.FileBytes>>20)
		}
	}
	do := migration.Apply
	if m.dryRun {
		do = migration.Plan
	}
	report, err := do(ctx, m.dir, m.options)
	if report != nil {
		if werr := writeReport(stdout, stderr, report, m.asJSON); werr != nil {
			err = errors.Join(err, fmt.Errorf("write the result: %w", werr))
		}
	}
	switch {
	case err != nil:
		return cannot(stderr, "migrate", err)
	case !report.OK:
		return exitProblems
	}
	return exitOK
}

func writeReport(stdout, stderr io.Writer, r *migration.Report, asJSON bool) error {
	for _, note := range r.Notes {
		fmt.Fprintln(stderr, line(note))
	}
	if asJSON {
		return writeJSON(stdout, r)
	}
	return writeTable(stdout, r)
}

func writeTable(out io.Writer, r *migration.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTORE\tCHANGELOG PARTITION\tLEGACY\tNEXT\tACTION\tREASON")
	rows, suspect := 0, false
	for _, t := range r.Tasks {
		for _, e := range t.Entries {
			rows++
			suspect = suspect || e.State == migration.StateSuspect
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line(t.Task), cmp.Or(line(e.Store), "-"), changelogOf(e), numberOr(e.Raw, "-"), nextOf(e), e.Action, line(e.Reason))
		}
	}
	if rows == 0 {
		fmt.Fprintln(w, "(no offsets)")
	}
	if suspect {
		fmt.Fprintln(w, "?: the file says so, and is not believed")
	}
	writeFiles(w, r)
	return w.Flush()
}

func changelogOf(e migration.Entry) string {
	if e.Topic == "" {
		return "not logged"
	}
	return fmt.Sprintf("%s-%d", line(e.Topic), e.Partition)
}

func numberOr(n *int64, none string) string {
	if n == nil {
		return none
	}
	return fmt.Sprint(*n)
}

func nextOf(e migration.Entry) string {
	switch next := numberOr(e.NextOffset, string(e.State)); e.State {
	case migration.StateSuspect:
		return next + "?"
	default:
		return next
	}
}

// writeFiles names the files about which there is something to say.
func writeFiles(w io.Writer, r *migration.Report) {
	head := "\nFILE\tSTATUS\tREASON\n"
	for _, t := range r.Tasks {
		for _, f := range t.Files {
			if f.Reason == "" {
				continue
			}
			fmt.Fprintf(w, "%s%s\t%s\t%s\n", head, line(f.Path), f.Status, line(f.Reason))
			head = ""
		}
	}
}
