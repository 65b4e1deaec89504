package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/statedir"
)

// tree is the applications and tasks that an argument names: a state directory, an
// application's or one task's.
type tree struct {
	path  string
	apps  []statedir.App
	other []string // names in the state directory that are no application's
	// single: the argument is one task's directory, whatever its name (a snapshot).
	single bool
}

// lookAt finds out what kind of directory path is.
func lookAt(path string) (tree, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return tree{}, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return tree{}, err
	}
	if !info.IsDir() {
		return tree{}, fmt.Errorf("%s is a file; give a state directory, an application's directory or a task's", abs)
	}
	t := tree{path: abs}
	switch isTask, err := isTaskDir(abs); {
	case err != nil:
		return tree{}, err
	case isTask:
		parent := filepath.Dir(abs)
		t.single = true
		t.apps = []statedir.App{{ID: filepath.Base(parent), Path: parent, Tasks: []string{filepath.Base(abs)}}}
		return t, nil
	}
	if statedir.LooksLikeApp(abs) {
		a, err := statedir.LookApp(abs)
		t.apps = []statedir.App{a}
		return t, err
	}
	t.apps, t.other, err = statedir.Look(abs)
	if err == nil && len(t.apps) == 0 {
		err = fmt.Errorf("%s has no application in it; give a state directory, an application's directory or a task's", abs)
	}
	return t, err
}

// isTaskDir: by its name, or because there is a database in it.
func isTaskDir(path string) (bool, error) {
	if statedir.IsTaskID(filepath.Base(path)) {
		return true, nil
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "MANIFEST-") || strings.HasPrefix(e.Name(), "marker.manifest.") {
			return true, nil
		}
	}
	return false, err
}

// holds tells whether path, which need not exist, lies in what the argument names, or in the
// directory of an application to which that belongs.
func (t tree) holds(path string) bool {
	roots := []string{t.path}
	if parent := filepath.Dir(t.path); t.single && statedir.LooksLikeApp(parent) {
		roots = append(roots, parent)
	}
	path = withoutLinks(path)
	for _, root := range roots {
		below, err := filepath.Rel(withoutLinks(root), path)
		if err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

// withoutLinks resolves as much of an absolute path as exists.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(withoutLinks(parent), filepath.Base(path))
}

// choose gives the one application that is meant, and refuses to guess.
func (t tree) choose(app string) (statedir.App, error) {
	var ids []string
	for _, a := range t.apps {
		if a.ID == app {
			return a, nil
		}
		ids = append(ids, a.ID)
	}
	if app == "" && len(t.apps) == 1 {
		return t.apps[0], nil
	}
	if app == "" {
		return statedir.App{}, fmt.Errorf("%s has the applications %s: say which with --app", t.path, strings.Join(ids, ", "))
	}
	return statedir.App{}, fmt.Errorf("%s has no application %s, only %s", t.path, app, strings.Join(ids, ", "))
}
