package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/statestore"
)

const inspectUsage = `usage: tidemark inspect STATE_DIR [--json]

Shows what is in a state directory (or one application's directory in it, or one task's):
tasks, stores, offsets, positions, sizes, files of other programs, what was set aside or is
being removed, and who has it open. It writes nothing. Of a task that is in use nothing
can be read; take a snapshot and look into that.

Exit codes: 0 all fine, 1 something is wrong with a task, 2 could not run.

`

// What a task's directory can be.
const (
	statusOK         = "ok"
	statusInUse      = "in use"
	statusNoStore    = "no task store" // only files of another program, or nothing
	statusNewer      = "newer format"
	statusCorrupt    = "corrupt"
	statusUnreadable = "unreadable"
)

func runInspect(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("inspect", flag.ContinueOnError)
	asJSON := f.Bool("json", false, "JSON instead of text")
	path, code, done := onePath(f, inspectUsage, args, stderr)
	if done {
		return code
	}
	t, err := lookAt(path)
	if err != nil {
		return cannot(stderr, "inspect", err)
	}
	in, err := inspect(ctx, t)
	if err != nil {
		return cannot(stderr, "inspect", err)
	}
	write := writeInspection
	if *asJSON {
		write = func(w io.Writer, in *inspection) error { return writeJSON(w, in) }
	}
	if err := write(stdout, in); err != nil {
		return cannot(stderr, "inspect", fmt.Errorf("write the result: %w", err))
	}
	if in.Problems > 0 {
		return exitProblems
	}
	return exitOK
}

func inspect(ctx context.Context, t tree) (*inspection, error) {
	in := &inspection{Path: t.path, Apps: []inspectedApp{}, Other: t.other}
	resources, err := statestore.NewResources(readingResources)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resources.Close() }() // every view is closed
	for _, a := range t.apps {
		app, err := inspectApp(a, t.single)
		if err != nil {
			return nil, err
		}
		if hasUnreadable(app.Legacy) {
			in.Problems++
		}
		for _, id := range a.Tasks {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			task := inspectTask(a, id, resources)
			if task.Problem != "" {
				in.Problems++
			}
			app.Tasks = append(app.Tasks, task)
		}
		in.Apps = append(in.Apps, app)
	}
	return in, nil
}

// inspectApp gives what is said of an application beside its tasks.
func inspectApp(a statedir.App, single bool) (inspectedApp, error) {
	app := inspectedApp{App: a.ID, Path: a.Path, Tasks: []inspectedTask{}, Other: a.Other}
	h, held, err := a.Holder()
	if err != nil {
		return app, err
	}
	if held {
		app.InUse, app.Lock = h.String(), &lockFacts{PID: h.PID, Host: h.Host, Start: timeOr(h.Start)}
	}
	for _, x := range a.Aside {
		app.Aside = append(app.Aside, asideTask(x))
	}
	for _, x := range a.Trash {
		size, _ := sizeOf(x.Path) // a cleaning may be at it
		app.Trash = append(app.Trash, trashedTask{Task: x.Task, Path: x.Path, Bytes: size})
	}
	if single { // only the task was asked for
		return app, nil
	}
	found, err := migration.LookApplication(a.Path)
	app.Legacy = legacyFiles(a.Path, found)
	if err != nil {
		app.Legacy = append(app.Legacy, legacyFile{Path: "global", Status: string(migration.StatusUnreadable), Reason: err.Error()})
	}
	return app, nil
}

// legacyFiles names the files as they are called below dir.
func legacyFiles(dir string, found []migration.Found) []legacyFile {
	var files []legacyFile
	for _, f := range found {
		path, err := filepath.Rel(dir, f.Path)
		if err != nil {
			path = f.Path
		}
		files = append(files, legacyFile{Path: filepath.ToSlash(path), Kind: string(f.Kind), Status: string(f.Status),
			Reason: f.Reason, Store: f.Store, Engine: f.Engine})
	}
	return files
}

func hasUnreadable(files []legacyFile) bool {
	return slices.ContainsFunc(files, func(f legacyFile) bool { return f.Status == string(migration.StatusUnreadable) })
}

// readingResources are for task stores that are read one after another.
var readingResources = statestore.ResourceOptions{BlockCacheBytes: 8 << 20, OpenFiles: 64, Compactions: 1, Syncs: 1}

func inspectTask(a statedir.App, id string, resources *statestore.Resources) inspectedTask {
	t := inspectedTask{Task: id, Path: filepath.Join(a.Path, id), Status: statusOK}
	other, err := statestore.OtherFiles(t.Path)
	if err == nil {
		t.OtherFiles = other
		t.Bytes, err = sizeOf(t.Path)
	}
	var v *statestore.View
	if err == nil {
		v, err = statestore.OpenReadOnly(t.Path, statestore.ReadOptions{Resources: resources, Logger: quiet()})
	}
	if err == nil {
		t.Store, err = factsOf(v)
		err = errors.Join(err, v.Close())
	}
	if err != nil {
		t.Status = statusOf(err)
		if t.Status != statusNoStore && t.Status != statusInUse {
			t.Problem = err.Error()
		}
	}
	found, err := migration.Look(t.Path)
	t.Legacy = legacyFiles(t.Path, found)
	if err == nil && hasUnreadable(t.Legacy) {
		err = errors.New("a legacy file cannot be read")
	}
	if err != nil && t.Problem == "" {
		t.Problem = err.Error()
	}
	return t
}

func statusOf(err error) string {
	switch {
	case errors.Is(err, statestore.ErrLocked):
		return statusInUse
	case errors.Is(err, statestore.ErrNoStore):
		return statusNoStore
	case errors.Is(err, statestore.ErrNewerFormat):
		return statusNewer
	case errors.Is(err, statestore.ErrCorrupt):
		return statusCorrupt
	}
	return statusUnreadable
}

// sizeOf adds up the files in a directory, and below it.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // a running task has just removed it
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
