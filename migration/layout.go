package migration

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	checkpointName  = ".checkpoint"
	storeCheckpoint = ".checkpoint_"
	positionSuffix  = ".position"
	temporarySuffix = ".tmp"
	processName     = "kafka-streams-process-metadata"
	globalName      = "global"
)

var uuidForm = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// taskID is the name of a task directory, taken apart.
type taskID struct {
	topology               string // "" = not named
	subtopology, partition int32
	global                 bool
}

func (t taskID) String() string {
	switch {
	case t.global && t.topology == "":
		return globalName
	case t.global:
		return t.topology + "__" + globalName
	case t.topology == "":
		return fmt.Sprintf("%d_%d", t.subtopology, t.partition)
	}
	return fmt.Sprintf("%s__%d_%d", t.topology, t.subtopology, t.partition)
}

func (t taskID) compare(u taskID) int {
	less := func(a, b bool) int { // false first
		switch {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(t.topology, u.topology), less(t.global, u.global),
		cmp.Compare(t.subtopology, u.subtopology), cmp.Compare(t.partition, u.partition))
}

// parseTaskDir takes only the spelling that Kafka Streams writes: 00_1 would be the same
// task as 0_1.
func parseTaskDir(name string) (taskID, bool) {
	s, p, ok := strings.Cut(name, "_")
	if !ok {
		return taskID{}, false
	}
	subtopology, err1 := strconv.ParseUint(s, 10, 31)
	partition, err2 := strconv.ParseUint(p, 10, 31)
	if err1 != nil || err2 != nil {
		return taskID{}, false
	}
	t := taskID{subtopology: int32(subtopology), partition: int32(partition)}
	return t, t.String() == name
}

// parseTopologyDir takes the name out of __<topology>__.
func parseTopologyDir(name string) (topology string, ok bool) {
	rest, ok1 := strings.CutPrefix(name, "__")
	topology, ok2 := strings.CutSuffix(rest, "__")
	return topology, ok1 && ok2 && topology != ""
}

// taskDir is a task directory that was found.
type taskDir struct {
	id   taskID
	path string
}

// application is the directory of one application.
type application struct {
	path string
	id   string
	dirs []taskDir
	// notes name what is none of ours.
	notes []string
}

// findApplication accepts the state directory, with the application's directory in it, and
// the application's directory itself. One who holds the lock of a directory has told which one it is: a
// directory in it may have any name, that of the application too.
func findApplication(dir string, o Options) (application, error) {
	here, err := listApplication(dir, cmp.Or(o.App, baseName(dir)))
	switch {
	case err != nil:
		return application{}, err
	case o.Held:
		return here, nil
	case o.App != "":
		return eitherApplication(here, dir, o.App)
	case here.isOne():
		return here, nil
	}
	return onlyApplication(dir)
}

// eitherApplication decides between a directory and the one of the application's name in it. A name alone says
// little: the state directory may be called like the application, and so may a copy beside the tasks.
func eitherApplication(here application, dir, app string) (application, error) {
	inside, err := listApplication(filepath.Join(dir, app), app)
	exists := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return application{}, err
	case exists && inside.isOne() && here.isOne() && baseName(dir) == app:
		return application{}, fmt.Errorf("both %s and %s look like the directory of the application %q: move the one away that is not, or name the directory itself, without an application id", dir, inside.path, app)
	case exists && inside.isOne():
		return inside, nil
	case here.isOne():
		return here, nil
	case exists: // with no task in it
		return inside, nil
	}
	return application{}, fmt.Errorf("there is no directory of the application %q in it, and it is none itself", app)
}

func onlyApplication(dir string) (application, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return application{}, err
	}
	var found []application
	for _, e := range entries {
		if !isDir(dir, e) {
			continue
		}
		a, err := listApplication(filepath.Join(dir, e.Name()), e.Name())
		if errors.Is(err, fs.ErrPermission) {
			continue // lost+found; an application there has to be named
		}
		if err != nil {
			return application{}, err
		}
		if a.isOne() {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return application{}, errors.New("there is no application in it; give the state directory, or an application's directory, which has those of tasks (<sub-topology>_<partition>) in it")
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, a := range found {
		names[i] = a.id
	}
	return application{}, fmt.Errorf("several applications: say which of %s", strings.Join(names, ", "))
}

func baseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return filepath.Base(abs)
	}
	return filepath.Base(dir)
}

func (a application) isOne() bool {
	if len(a.dirs) > 0 {
		return true
	}
	_, err := os.Lstat(filepath.Join(a.path, processName))
	return err == nil
}

func listApplication(path, id string) (application, error) {
	a := application{path: path, id: id}
	if err := a.list(path, ""); err != nil {
		return application{}, err
	}
	slices.SortFunc(a.dirs, func(x, y taskDir) int { return x.id.compare(y.id) })
	return a, nil
}

func (a *application) list(path, topology string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		if !isDir(path, e) {
			if _, ok := parseTaskDir(e.Name()); ok {
				a.notes = append(a.notes, full+": a file with the name of a task directory: left alone")
			}
			continue
		}
		id, isTask := parseTaskDir(e.Name())
		if e.Name() == globalName {
			id, isTask = taskID{global: true}, true
		}
		name, isTopology := parseTopologyDir(e.Name())
		switch {
		case isTask:
			id.topology = topology
			a.dirs = append(a.dirs, taskDir{id: id, path: full})
		case isTopology && topology == "":
			if err := a.list(full, name); err != nil {
				a.notes = append(a.notes, err.Error())
			}
		case !isOurs(e.Name()):
			a.notes = append(a.notes, full+": not the name of a task directory: left alone")
		}
	}
	return nil
}

// isDir follows symbolic links.
func isDir(parent string, e os.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(parent, e.Name()))
	return err == nil && info.IsDir()
}

// isOurs tells whether Tidemark itself made a directory beside the tasks'.
func isOurs(name string) bool {
	return strings.HasPrefix(name, ".trash") || strings.Contains(name, ".corrupt-") || strings.Contains(name, ".kept-")
}
