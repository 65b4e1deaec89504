package legacyfixture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Manifest is what is true of a fixture.
type Manifest struct {
	ProducedBy struct {
		// Guarantee is at_least_once or exactly_once_v2.
		Guarantee     string
		ApplicationID string
	}
	Stores       []Store
	GlobalStores []Store
	Instances    []Instance
}

// Store is a store of the topology.
type Store struct{ Name, Changelog string }

// Instance is one state directory.
type Instance struct {
	Instance, StateDir, ApplicationDir, Ended string
	Tree                                      []struct {
		Path, Type string
		Size       int64
	}
	Tasks []Task
}

// Task is one task directory, and what a migration must give of it.
type Task struct {
	Dir, Task, Dirty string
	CheckpointFile   bool
	Stores           map[string]struct {
		Changelog map[string]struct {
			State     string
			Raw, Next *int64
		}
		Position map[string]struct{ LastSeen, Next int64 }
	}
	UnknownEntries map[string]int64
	// MtimeVsCheckpointSeconds are the times of files against that of .checkpoint.
	MtimeVsCheckpointSeconds *struct{ NewestSst, OldestManifest, NewestManifest *float64 }
}

// Directory is one state directory of a fixture.
type Directory struct {
	Name string // <fixture>/<instance>
	Manifest
	Instance
	fixture string
}

// Directories gives all below root, migration/testdata/legacy, by name.
func Directories(root string) ([]Directory, error) {
	paths, err := filepath.Glob(filepath.Join(root, "*", "manifest.json"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no fixture below %s", root)
	}
	var all []Directory
	for _, path := range paths {
		var m Manifest
		if err := readJSON(path, &m); err != nil {
			return nil, err
		}
		dir := filepath.Dir(path)
		for _, i := range m.Instances {
			all = append(all, Directory{Name: filepath.Base(dir) + "/" + i.Instance, Manifest: m, Instance: i, fixture: dir})
		}
	}
	return all, err
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Build makes the directory below parent: the text files as they were, placeholders of the others, and
// the times that mattered.
func (d Directory) Build(parent string) (stateDir string, err error) {
	stateDir = filepath.Join(parent, d.StateDir)
	for _, e := range d.Tree {
		path := filepath.Join(stateDir, e.Path)
		if e.Type == "dir" {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return "", err
			}
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.fixture, d.StateDir, e.Path))
		if errors.Is(err, fs.ErrNotExist) {
			content, err = make([]byte, min(e.Size, 64)), nil
		}
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			return "", err
		}
	}
	for _, task := range d.Tasks {
		if err := task.setTimes(filepath.Join(stateDir, task.Dir)); err != nil {
			return "", err
		}
	}
	return stateDir, nil
}

func (t Task) setTimes(dir string) error {
	times := t.MtimeVsCheckpointSeconds
	if times == nil {
		return nil
	}
	checkpoint := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	set := func(path string, seconds *float64) error {
		if seconds == nil {
			return fmt.Errorf("%s: a file without a time in the manifest", path)
		}
		at := checkpoint.Add(time.Duration(*seconds * float64(time.Second)))
		return os.Chtimes(path, at, at)
	}
	if err := os.Chtimes(filepath.Join(dir, ".checkpoint"), checkpoint, checkpoint); err != nil {
		return err
	}
	first := true
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, ".sst"):
			return set(path, times.NewestSst)
		case strings.HasPrefix(e.Name(), "MANIFEST-") && first:
			first = false
			return set(path, times.NewestManifest)
		case strings.HasPrefix(e.Name(), "MANIFEST-"):
			return set(path, times.OldestManifest)
		}
		return nil
	})
}

// Maps gives the stores of the changelogs whose name does not tell the store.
func (m Manifest) Maps() map[string][]string {
	names := map[string][]string{}
	for _, s := range slices.Concat(m.Stores, m.GlobalStores) {
		if s.Changelog != "" && s.Changelog != m.ProducedBy.ApplicationID+"-"+s.Name+"-changelog" {
			names[s.Changelog] = append(names[s.Changelog], s.Name)
		}
	}
	return names
}

// Facts is what is known of a task, one line a fact: "<state> <raw> <next>" by "<store> <topic>-<partition>", and so on.
type Facts struct {
	Entries   map[string]string // state, raw and next by store and changelog partition
	Positions map[string]string // raw and next by store and source partition
	Unknown   map[string]string // raw by topic partition
}

// NewFacts gives empty ones.
func NewFacts() Facts { return Facts{map[string]string{}, map[string]string{}, map[string]string{}} }

// Number shows what may be missing.
func Number(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// Facts gives what a migration must find. believed: the offsets of the task are.
func (t Task) Facts(believed bool) Facts {
	f := NewFacts()
	for store, x := range t.Stores {
		for tp, c := range x.Changelog {
			state := map[string]string{"absent": "", "cleanUnknown": "unknown", "at": "at"}[c.State]
			if state == "at" && !believed {
				state = "suspect"
			}
			if state != "" {
				f.Entries[store+" "+tp] = fmt.Sprintf("%s %s %s", state, Number(c.Raw), Number(c.Next))
			}
		}
		for tp, c := range x.Position {
			f.Positions[store+" "+tp] = fmt.Sprintf("%d %d", c.LastSeen, c.Next)
		}
	}
	for tp, raw := range t.UnknownEntries {
		f.Unknown[tp] = fmt.Sprint(raw)
	}
	return f
}
