package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/internal/filelock"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/task"
)

const offsetsUsage = `usage: tidemark offsets show|accept-reset|use-store --app ID --brokers HOST:PORT --state-dir DIR [flags]

Compares the stores of this host with the offsets of the application's group. After a crash
they fit together by themselves. After a reset of offsets, a deletion or expiry of the group, the
deletion of an input or of records that were not read, or a broker that lost data they do not, and
the application stops. Then a person decides:

  show           only compare
  accept-reset   go on at the group's offsets (where there are none: at the configured start
                 position; where the log begins behind them: at its start), with the state as it
                 is, and without a store as the changelogs have it; records that it contains
                 already are counted again if the offsets went back
  use-store      go on where the stores stand, whatever the group's offsets are

The choice is recorded in the state directory and acted upon, once, at the application's next
start on this host, in the same transaction as its first commit. Nothing is recorded when
nothing is in conflict, nor use-store where that cannot end it. The application must not run on
this host.

Exit codes: 0 nothing is in conflict, or the choice is recorded; 1 (show) something is; 2 could
not run.

`

// comparedOffset is one source partition of a task on both sides.
type comparedOffset struct {
	Task      string `json:"task"` // empty: this host has no store of it
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Group     *int64 `json:"group_offset"`
	GroupID   string `json:"group_commit,omitempty"`
	Store     *int64 `json:"store_position"`
	StoreID   string `json:"store_commit"`
	State     string `json:"state"`
	Conflict  bool   `json:"conflict"`

	acceptOnly bool // use-store does not end the conflict
}

// comparedChangelog is a changelog that holds records of a store which no offset of the group names.
type comparedChangelog struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	State     string `json:"state"`
	Conflict  bool   `json:"conflict"`
}

// offsetsResult is the JSON form of the result.
type offsetsResult struct {
	App        string              `json:"app"`
	Offsets    []comparedOffset    `json:"offsets"`
	Changelogs []comparedChangelog `json:"changelogs"`
	Conflict   bool                `json:"conflict"`
	Recorded   string              `json:"recorded,omitempty"`

	stateDir string
}

// offsetsFlags are the arguments of the command.
type offsetsFlags struct {
	verb  string
	group string
	groupFlags
}

func runOffsets(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o offsetsFlags
	f := flag.NewFlagSet("offsets", flag.ContinueOnError)
	o.flags(f, "", "record nothing")
	f.StringVar(&o.group, "group", "", "consumer `group` of an embedded host, if it is not the application id")
	rest, code, done := parse(f, offsetsUsage, args, stderr, "show, accept-reset or use-store")
	if done {
		return code
	}
	if rest[0] != "show" && rest[0] != task.AcceptReset.String() && rest[0] != task.UseStore.String() {
		return misused(f, offsetsUsage, stderr, fmt.Sprintf("%q is none of show, accept-reset, use-store", rest[0]))
	}
	if missing := o.missing(true); missing != "" {
		return misused(f, offsetsUsage, stderr, missing)
	}
	o.verb = rest[0]
	r, err := o.run(ctx)
	if err == nil {
		err = r.print(stdout, o.asJSON)
	}
	switch {
	case err != nil:
		return cannot(stderr, "offsets", err)
	case r.Conflict && r.Recorded == "":
		return exitProblems
	}
	return exitOK
}

func (o *offsetsFlags) run(ctx context.Context) (r *offsetsResult, err error) {
	if err := statedir.ValidateAppID(o.app); err != nil {
		return nil, fmt.Errorf("--app: %w", err)
	}
	if o.stateDir, err = aboveApp(o.stateDir, o.app); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.stateDir); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	cl, err := o.open()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	local, err := openLocal(o.stateDir, o.app)
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) && o.verb == "show" {
		return nil, fmt.Errorf("%w; to compare while it runs, take a snapshot (tidemark snapshot) and name that with --state-dir", held)
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, local.close()) }()
	c, err := fetchComparison(ctx, kadm.NewClient(cl), o.app, cmp.Or(o.group, o.app))
	if err != nil {
		return nil, err
	}
	dirs, err := local.directories()
	if err != nil {
		return nil, err
	}
	if r, err = c.compare(dirs); err != nil {
		return nil, err
	}
	r.App, r.stateDir = o.app, o.stateDir
	if o.verb == "show" || o.dryRun || !r.Conflict && len(r.Changelogs) == 0 {
		return r, nil
	}
	if impossible := r.acceptOnly(); o.verb == task.UseStore.String() && len(impossible) > 0 {
		return nil, fmt.Errorf("use-store is not possible, since this host has no store that says where to go on: %s; choose accept-reset", strings.Join(impossible, "; "))
	}
	r.Recorded = o.verb
	return r, o.record(local)
}

// record keeps the choice in the application's directory, and makes that where it was lost.
func (o *offsetsFlags) record(local *localState) (err error) {
	if local.dir == nil {
		if local.dir, err = statedir.Open(o.stateDir, o.app); err != nil {
			return err
		}
	}
	return local.dir.RecordChoice(o.verb)
}

// acceptOnly names the conflicts that use-store does not end.
func (r *offsetsResult) acceptOnly() (names []string) {
	for _, x := range r.Offsets {
		if x.Conflict && x.acceptOnly {
			names = append(names, fmt.Sprintf("%s-%d: %s", x.Topic, x.Partition, x.State))
		}
	}
	for _, x := range r.Changelogs {
		if x.Conflict {
			names = append(names, fmt.Sprintf("%s-%d: %s", x.Topic, x.Partition, x.State))
		}
	}
	return names
}

func (r *offsetsResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if len(r.Offsets) == 0 {
		fmt.Fprintf(t, "application %s has no stores in %s, and its group no offsets\n", r.App, line(r.stateDir))
	} else {
		fmt.Fprint(t, "TASK\tSOURCE\tGROUP\tAT COMMIT\tSTORE\tAT COMMIT\tSTATE\n")
	}
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, c := range r.Offsets {
		fmt.Fprintf(t, "%s\t%s-%d\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(c.Task, "-"), c.Topic, c.Partition, number(c.Group), c.GroupID, number(c.Store), c.StoreID, c.State)
	}
	if len(r.Changelogs) > 0 {
		fmt.Fprint(t, "\nCHANGELOG\tHOLDS\tSTATE\n")
	}
	for _, c := range r.Changelogs {
		fmt.Fprintf(t, "%s-%d\t%d to %d\t%s\n", c.Topic, c.Partition, c.Start, c.End, c.State)
	}
	switch {
	case r.Recorded != "":
		fmt.Fprintf(t, "\nrecorded for the next start: %s\n", r.Recorded)
	case r.Conflict:
		choices := "accept-reset or use-store"
		if len(r.acceptOnly()) > 0 {
			choices = "accept-reset (use-store does not end all of it)"
		}
		fmt.Fprintf(t, "\nstores, group and logs cannot all be right: choose %s\n", choices)
	}
	return t.Flush()
}
