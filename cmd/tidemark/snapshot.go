package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tidemark-streams/tidemark/statestore"
)

const snapshotUsage = `usage: tidemark snapshot STATE_DIR DEST

Makes a copy in DEST of the task stores in a state directory (or one application's directory in
it, or one task's), with the same directories below it. The application may be running: each
task store is copied as it is after one of its commits. On the same file system the table files
are hard links, so it takes little time and space. DEST is made; it must not be inside of what
is copied. A task that could not be copied is not in it; one that is there is whole, and is
never overwritten.

Exit codes: 0 done, 1 some tasks could not be copied, 2 could not run.

`

func runSnapshot(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("snapshot", flag.ContinueOnError)
	rest, code, done := parse(f, snapshotUsage, args, stderr, "STATE_DIR", "DEST")
	if done {
		return code
	}
	failed, err := snapshot(ctx, rest[0], rest[1], stdout, stderr)
	switch {
	case err != nil:
		return cannot(stderr, "snapshot", err)
	case failed > 0:
		return exitProblems
	}
	return exitOK
}

func snapshot(ctx context.Context, from, to string, stdout, stderr io.Writer) (failed int, err error) {
	t, err := lookAt(from)
	if err != nil {
		return 0, err
	}
	if to, err = filepath.Abs(to); err != nil {
		return 0, err
	}
	if t.holds(to) {
		return 0, fmt.Errorf("%s is inside of what is copied, %s: it would be taken for a part of it; give a place beside it", to, t.path)
	}
	copied := 0
	for _, a := range t.apps {
		for _, id := range a.Tasks {
			if err := ctx.Err(); err != nil {
				return failed, err
			}
			dir := filepath.Join(a.Path, id)
			below, err := filepath.Rel(t.path, dir)
			if err != nil {
				return failed, err
			}
			dest := filepath.Join(to, below)
			err = statestore.SnapshotDir(dir, dest, statestore.ReadOptions{Logger: quiet()})
			switch {
			case errors.Is(err, statestore.ErrNoStore):
				continue
			case err != nil:
				failed++
				fmt.Fprintf(stderr, "tidemark snapshot: %s\n", errorLine(err.Error()))
				continue
			}
			copied++
			if _, err := fmt.Fprintf(stdout, "%s %s: %s\n", line(a.ID), id, line(dest)); err != nil {
				return failed, fmt.Errorf("write the result: %w", err)
			}
		}
	}
	if copied+failed == 0 {
		return 0, fmt.Errorf("%s has no task store in it", t.path)
	}
	return failed, nil
}
