package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/filelock"
)

// App is an application directory as it looks from outside: not opened, not locked.
type App struct {
	ID, Path string
	// Tasks are the ids of the tasks that have a directory, by sub-topology and partition.
	Tasks []string
	// Aside are the task directories that were set aside.
	Aside []Aside
	// Trash are the task directories that a cleaning was stopped at: the next one removes
	// them.
	Trash []Trash
	// Other are the names of everything that is neither a task's nor Tidemark's own.
	Other []string
}

// Trash is a task directory that is being removed.
type Trash struct {
	Task string // "" = its name does not tell
	Path string
}

func trashOf(path string) Trash {
	t := Trash{Path: path}
	_, task, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), trashMark), "-")
	if IsTaskID(task) {
		t.Task = task
	}
	return t
}

// IsTaskID tells whether a name is that of a task's directory.
func IsTaskID(name string) bool {
	_, ok := parseTaskID(name)
	return ok
}

// LookApp looks into an application directory.
func LookApp(path string) (App, error) {
	a := App{ID: filepath.Base(path), Path: path}
	entries, err := os.ReadDir(path)
	if err != nil {
		return a, fmt.Errorf("look into application directory: %w", err)
	}
	if a.Aside, err = AsideDirs(path); err != nil {
		return a, err
	}
	var tasks []taskName
	for _, e := range entries {
		t, ok := parseTaskID(e.Name())
		switch {
		case ok && e.IsDir():
			tasks = append(tasks, t)
		case e.Name() == lockFile || e.Name() == processIDFile || e.Name() == transactionalIDsFile || e.Name() == choiceFile || e.Name() == anewFile:
		case slices.ContainsFunc(a.Aside, func(x Aside) bool { return filepath.Base(x.Path) == e.Name() }):
		case e.IsDir() && strings.HasPrefix(e.Name(), trashMark):
			a.Trash = append(a.Trash, trashOf(filepath.Join(path, e.Name())))
		default:
			a.Other = append(a.Other, e.Name())
		}
	}
	a.Tasks = sortedTaskIDs(tasks)
	return a, nil
}

// isApp tells whether Tidemark made the application directory, or there are tasks in it.
func (a App) isApp() bool {
	if len(a.Tasks) > 0 || len(a.Aside) > 0 {
		return true
	}
	for _, name := range []string{lockFile, processIDFile} {
		if _, err := os.Stat(filepath.Join(a.Path, name)); err == nil {
			return true
		}
	}
	return false
}

// LooksLikeApp tells whether path is an application directory: there are tasks in it, or
// Tidemark made it.
func LooksLikeApp(path string) bool {
	a, err := LookApp(path)
	return err == nil && a.isApp()
}

// Look gives the applications in a state directory, by name, and the names of everything
// else in it.
func Look(stateDir string) (apps []App, other []string, err error) {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return nil, nil, fmt.Errorf("look into state directory: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && ValidateAppID(e.Name()) == nil {
			a, err := LookApp(filepath.Join(stateDir, e.Name()))
			if err != nil {
				return nil, nil, err
			}
			if a.isApp() {
				apps = append(apps, a)
				continue
			}
		}
		other = append(other, e.Name())
	}
	return apps, other, nil
}

// Holder tells who has the application directory open; ok is false when nobody has.
func (a App) Holder() (h filelock.Holder, ok bool, err error) {
	h, ok, err = filelock.Probe(filepath.Join(a.Path, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return filelock.Holder{}, false, nil
	}
	return h, ok, err
}
