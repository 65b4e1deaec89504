package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/internal/statedir"
)

const resetUsage = `usage: tidemark reset --app ID --brokers HOST:PORT [--state-dir DIR] [flags]

Lets an application start over, as if it had never run: deletes its group with all offsets, its
internal topics (changelogs, repartition topics, the placement topic) and, with --state-dir, its
tasks' stores on this host. Input and output topics stay as they are. At its next start the
application begins at its configured start position.

It refuses while the group has members. A process that was closed or killed stays a member until
its session is over (10 s by default). Run it with --state-dir on every host that has state;
where it was not run, the application refuses to start on the old stores.

What is left by an interrupted reset another one removes; until then the application refuses to start.

Exit codes: 0 done (or, with --dry-run, could be), 2 could not run.

`

// resetFlags are the arguments of the command.
type resetFlags struct{ groupFlags }

func runReset(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var r resetFlags
	f := flag.NewFlagSet("reset", flag.ContinueOnError)
	r.flags(f, " on this host", "only say what would be deleted")
	_, code, done := parse(f, resetUsage, args, stderr)
	if done {
		return code
	}
	if missing := r.missing(false); missing != "" {
		return misused(f, resetUsage, stderr, missing)
	}
	if err := r.run(ctx, stdout); err != nil {
		return cannot(stderr, "reset", err)
	}
	return exitOK
}

func (r *resetFlags) run(ctx context.Context, stdout io.Writer) (err error) {
	if err := statedir.ValidateAppID(r.app); err != nil {
		return fmt.Errorf("--app: %w", err)
	}
	if r.stateDir, err = aboveApp(r.stateDir, r.app); err != nil {
		return err
	}
	if r.stateDir != "" {
		if _, err := os.Stat(r.stateDir); err != nil {
			return fmt.Errorf("%w: on a host that has no state leave --state-dir out", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cl, err := r.open()
	if err != nil {
		return err
	}
	defer cl.Close()
	local, err := openLocal(r.stateDir, r.app)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.close()) }()
	adm := kadm.NewClient(cl)
	plan, err := r.plan(ctx, adm, local)
	if err != nil {
		return err
	}
	if !r.dryRun {
		if err := plan.carryOut(ctx, adm, local); err != nil {
			return err
		}
	}
	if r.asJSON {
		return writeJSON(stdout, plan)
	}
	return plan.print(stdout)
}

// plan collects the facts.
func (r *resetFlags) plan(ctx context.Context, adm *kadm.Client, local *localState) (*resetPlan, error) {
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	p := newResetPlan(r.app, topics, groups)
	p.DryRun = r.dryRun
	if err := local.removable(); err != nil {
		return nil, err
	}
	if p.Directories, err = local.directories(); err != nil {
		return nil, err
	}
	if _, ok := groups[r.app]; !ok {
		return p, nil
	}
	described, err := adm.DescribeGroups(ctx, r.app)
	if err == nil {
		err = described[r.app].Err
	}
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", r.app, err)
	}
	if err := refuseMembers(described[r.app]); err != nil {
		return nil, err
	}
	offsets, err := adm.FetchOffsets(ctx, r.app)
	if err != nil {
		return nil, fmt.Errorf("read the offsets of group %s: %w", r.app, err)
	}
	p.Group, p.Offsets = true, len(offsets.Offsets().Sorted())
	return p, nil
}

// print writes the plan for people.
func (p *resetPlan) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	done := "deleted"
	if p.DryRun {
		done = "to be deleted"
	}
	if p.Group {
		fmt.Fprintf(t, "group\t%s\t%d offsets\t%s\n", p.App, p.Offsets, done)
	}
	for _, x := range p.Topics {
		fmt.Fprintf(t, "topic\t%s\t%d partitions\t%s\n", x.Name, x.Partitions, done)
	}
	for _, d := range p.Directories {
		fmt.Fprintf(t, "directory\t%s\t\t%s\n", d, done)
	}
	for _, x := range p.Others {
		fmt.Fprintf(t, "topic\t%s\t%d partitions\tstays: it is of application %s\n", x.Name, x.Partitions, x.App)
	}
	if !p.Group && len(p.Topics)+len(p.Directories) == 0 {
		fmt.Fprintf(t, "nothing is there of application %s\n", p.App)
	}
	return t.Flush()
}
