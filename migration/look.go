package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

// KindDatabase is a store's data, in what Look finds.
const KindDatabase FileKind = "database"

// StatusMigrated: a migration has dealt with it, and its name says so; in what Look finds.
const StatusMigrated FileStatus = "migrated"

// Found is a legacy file or database as it lies there.
type Found struct {
	Path   string // as the directory was given
	Kind   FileKind
	Status FileStatus
	Reason string
	Store  string // "" = of the whole task
	Engine string // of a database: RocksDB, Pebble, LevelDB, goka
}

// Look gives the legacy files and databases of a task's or the global directory, by path,
// also those that a migration has renamed. It writes nothing and opens no task store.
// StatusQuarantined is a file that was quarantined, or will be by a migration.
func Look(taskDir string) ([]Found, error) {
	p := &taskPlan{Task: &Task{dir: taskDir}, own: map[string][]offsetfile.Line{}, seen: map[string][]offsetfile.Line{}}
	var err error
	if p.stores, err = findStores(taskDir); err != nil {
		return nil, fmt.Errorf("look for legacy files: %w", err)
	}
	p.readFiles()
	var found []Found
	for _, f := range p.Files {
		if f.Status != StatusAbsent || f.Reason != "" {
			found = append(found, Found{Path: f.Path, Kind: f.Kind, Status: f.Status, Reason: f.Reason, Store: f.store})
		}
	}
	for _, d := range p.stores {
		found = append(found, d.found())
	}
	aside, err := p.lookAside()
	if err != nil {
		return nil, fmt.Errorf("look for legacy files: %w", err)
	}
	found = append(found, aside...)
	slices.SortFunc(found, func(x, y Found) int { return strings.Compare(x.Path, y.Path) })
	return found, nil
}

// LookApplication gives what belongs to no task: the process file of Kafka Streams, and
// the files of the global stores.
func LookApplication(appDir string) ([]Found, error) {
	var found []Found
	if f := readProcessFile(filepath.Join(appDir, processName)); f.Status != StatusAbsent || f.Reason != "" {
		found = append(found, Found{Path: f.Path, Kind: f.Kind, Status: f.Status, Reason: f.Reason})
	}
	global := filepath.Join(appDir, globalName)
	if info, err := os.Stat(global); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return found, nil
	}
	more, err := Look(global)
	return append(found, more...), err
}

func (d storeDir) found() Found {
	f := Found{Path: d.path, Kind: KindDatabase, Status: StatusOK, Store: d.store, Engine: string(d.engine)}
	if g := d.goka; g != nil {
		f.Reason = g.reason
		if g.topic != "" {
			f.Store = "" // the topic's, whichever that is
		}
		if g.cause != nil {
			f.Status, f.Reason = StatusUnreadable, g.cause.Error()
		}
	}
	return f
}

// lookAside finds what was renamed, in the task directory and in the folders below it.
func (p *taskPlan) lookAside() ([]Found, error) {
	var found []Found
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isSetAside(e.Name()) {
			if !e.IsDir() {
				found = append(found, p.aside(filepath.Join(p.dir, e.Name())))
			}
			continue
		}
		if !isDir(p.dir, e) {
			continue
		}
		folder := filepath.Join(p.dir, e.Name())
		below, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, d := range below {
			if d.IsDir() && isSetAside(d.Name()) {
				f := setAsideAs(filepath.Join(folder, d.Name()))
				f.Kind, f.Store = KindDatabase, originalName(d.Name())
				found = append(found, f)
			}
		}
	}
	return found, nil
}

func (p *taskPlan) aside(path string) Found {
	f := setAsideAs(path)
	f.Kind = KindCheckpoint
	if store, kind, ok := p.storeFile(originalName(filepath.Base(path))); ok {
		f.Store, f.Kind = store, kind
	}
	return f
}

func setAsideAs(path string) Found {
	f := Found{Path: path, Status: StatusMigrated}
	if strings.Contains(filepath.Base(path), quarantineMarker) {
		f.Status = StatusQuarantined
	}
	return f
}

// originalName takes off what setAside has put behind a name.
func originalName(name string) string {
	if i := strings.LastIndex(name, quarantineMarker); i >= 0 {
		return name[:i]
	}
	return name[:max(0, strings.LastIndex(name, migratedSuffix))]
}
