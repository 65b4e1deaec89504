package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/statestore"
)

const verifyUsage = `usage: tidemark verify STATE_DIR [--json]

Reads every block of every table file and every row of the task stores in a state directory
(or one application's directory in it, or one task's), and compares metadata and data. It
writes nothing. Directories without a task store are passed over. A task that is in use
cannot be verified; take a snapshot and verify that.

Exit codes: 0 all is whole, 1 problems were found, 2 something could not be verified.

`

// The result of verify. docs/cli.md documents the JSON; names and meanings stay.
type (
	verification struct {
		Path     string         `json:"path"`
		Tasks    []verifiedTask `json:"tasks"`
		Problems int            `json:"problems"`
		Failed   int            `json:"not_verified"`
	}
	verifiedTask struct {
		App      string          `json:"app"`
		Task     string          `json:"task"`
		Path     string          `json:"path"`
		Status   string          `json:"status"`
		Error    string          `json:"error,omitempty"`
		Tables   int             `json:"tables"`
		Bytes    int64           `json:"bytes"`
		Stores   []verifiedStore `json:"stores"`
		Problems []string        `json:"problems"`
	}
	verifiedStore struct {
		Name    string `json:"name"`
		Rows    int64  `json:"rows"`
		Bytes   int64  `json:"bytes"`
		Expired int64  `json:"expired,omitempty"`
	}
)

func runVerify(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("verify", flag.ContinueOnError)
	asJSON := f.Bool("json", false, "JSON instead of text")
	path, code, done := onePath(f, verifyUsage, args, stderr)
	if done {
		return code
	}
	t, err := lookAt(path)
	if err != nil {
		return cannot(stderr, "verify", err)
	}
	result, err := verify(ctx, t)
	if err != nil {
		return cannot(stderr, "verify", err)
	}
	write := writeVerification
	if *asJSON {
		write = func(w io.Writer, v *verification) error { return writeJSON(w, v) }
	}
	if err := write(stdout, result); err != nil {
		return cannot(stderr, "verify", fmt.Errorf("write the result: %w", err))
	}
	switch {
	case result.Problems > 0:
		return exitProblems
	case result.Failed > 0:
		return exitFailed
	}
	return exitOK
}

func verify(ctx context.Context, t tree) (*verification, error) {
	result := &verification{Path: t.path, Tasks: []verifiedTask{}}
	resources, err := statestore.NewResources(readingResources)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resources.Close() }() // every view is closed
	for _, a := range t.apps {
		for _, id := range a.Tasks {
			v := verifyTask(ctx, a, id, resources)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			result.Problems += len(v.Problems)
			if v.Error != "" {
				result.Failed++
			}
			result.Tasks = append(result.Tasks, v)
		}
	}
	return result, nil
}

func verifyTask(ctx context.Context, a statedir.App, id string, resources *statestore.Resources) verifiedTask {
	t := verifiedTask{App: a.ID, Task: id, Path: filepath.Join(a.Path, id), Status: statusOK, Stores: []verifiedStore{}, Problems: []string{}}
	v, err := statestore.OpenReadOnly(t.Path, statestore.ReadOptions{Resources: resources, Logger: quiet()})
	if err == nil {
		var found statestore.Verification
		found, err = v.Verify(ctx)
		t.Tables, t.Bytes = found.Tables, found.Bytes
		for _, s := range found.Stores {
			t.Stores = append(t.Stores, verifiedStore(s))
		}
		if len(found.Problems) > 0 {
			t.Status, t.Problems = statusCorrupt, found.Problems
		}
		err = errors.Join(err, v.Close())
	}
	if err == nil {
		return t
	}
	switch t.Status = statusOf(err); t.Status {
	case statusCorrupt:
		t.Problems = append(t.Problems, err.Error())
	case statusNoStore:
	default:
		t.Error = err.Error()
	}
	return t
}

// writeVerification writes the result of verify for people.
func writeVerification(out io.Writer, v *verification) error {
	var b bytes.Buffer
	for _, t := range v.Tasks {
		fmt.Fprintf(&b, "%s task %s: %s", line(t.App), line(t.Task), t.Status)
		if t.Tables > 0 || len(t.Stores) > 0 {
			fmt.Fprintf(&b, ", %s of %s", count(t.Tables, "table file"), byteCount(t.Bytes))
		}
		for _, s := range t.Stores {
			fmt.Fprintf(&b, ", %s %s", line(s.Name), count(int(s.Rows), "row"))
			if s.Expired > 0 {
				fmt.Fprintf(&b, " (%d expired)", s.Expired)
			}
		}
		b.WriteByte('\n')
		for _, p := range t.Problems {
			fmt.Fprintf(&b, "  PROBLEM: %s\n", errorLine(p))
		}
		if t.Error != "" {
			fmt.Fprintf(&b, "  NOT VERIFIED: %s\n", errorLine(t.Error))
		}
	}
	fmt.Fprintf(&b, "%s, %d not verified\n", count(v.Problems, "problem"), v.Failed)
	_, err := out.Write(b.Bytes())
	return err
}
