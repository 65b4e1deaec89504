package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/tidemark-streams/tidemark/internal/filelock"
)

const (
	lockFile             = "tidemark.lock"
	processIDFile        = "process-id"
	transactionalIDsFile = "transactional-ids"
)

// Dir is an application directory that this process has open.
type Dir struct {
	path      string
	processID string

	mu     sync.Mutex
	lock   *filelock.Lock // nil after Close
	txnIDs *idList
	leases map[string]string // who has it, by task
}

// Open opens <stateDir>/<appID>, creating what is missing with mode 0700, and locks it
// for this process. Another process, or another Open of this one, that holds it makes
// Open fail at once with an error that wraps a [*filelock.HeldError].
func Open(stateDir, appID string) (*Dir, error) {
	if err := ValidateAppID(appID); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if stateDir == "" {
		return nil, errors.New("open state directory: its path is empty")
	}
	// Absolute, so that a later change of the working directory moves nothing.
	root, err := filepath.Abs(stateDir)
	if err != nil {
		return nil, fmt.Errorf("open state directory %s: %w", stateDir, err)
	}
	d := &Dir{path: filepath.Join(root, appID)}
	if err := makeDir(d.path); err != nil {
		return nil, openError(d.path, err)
	}
	if d.lock, err = filelock.Take(filepath.Join(d.path, lockFile), ""); err != nil {
		return nil, openError(d.path, err)
	}
	if err := d.load(); err != nil {
		return nil, errors.Join(openError(d.path, err), d.lock.Close())
	}
	return d, nil
}

func openError(path string, err error) error {
	var held *filelock.HeldError
	if errors.As(err, &held) {
		return fmt.Errorf("open state directory %s: already in use: %w: stop that process, or give this one a state "+
			"directory of its own", path, err)
	}
	what := ""
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		what = ": this user must be able to write there"
	case errors.Is(err, syscall.ENOTDIR):
		what = ": a file is in its place, choose another state directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = ": free some space there"
	}
	return fmt.Errorf("open state directory %s: %w%s", path, err, what)
}

func (d *Dir) load() (err error) {
	// A process that was killed may have made the directory without getting to its sync.
	if err := syncDir(filepath.Dir(d.path)); err != nil {
		return err
	}
	if d.processID, err = loadProcessID(d.path); err != nil {
		return err
	}
	d.txnIDs, err = openIDList(filepath.Join(d.path, transactionalIDsFile))
	return err
}

// Path returns the absolute path of <state dir>/<app id>.
func (d *Dir) Path() string { return d.path }

// ProcessID returns the UUID of this directory, in its text form: the same for every
// process that opens it. It is the static instance id in the consumer group and a part
// of the transactional ids.
func (d *Dir) ProcessID() string { return d.processID }

// TransactionalIDs returns all transactional ids ever recorded here, oldest first. The
// caller owns the slice.
func (d *Dir) TransactionalIDs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.txnIDs.ids...)
}

// RecordTransactionalID adds id to the list and returns when it is on disk; call it
// before the id's first use, so that whoever opens the directory later can fence it.
// An id that is already there costs nothing. From then on [Dir.Anew] is false.
func (d *Dir) RecordTransactionalID(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return fmt.Errorf("record transactional id %q: state directory %s is closed", id, d.path)
	}
	if err := errors.Join(d.txnIDs.add(id), d.begun()); err != nil {
		return fmt.Errorf("record transactional id %q: %w", id, err)
	}
	return nil
}

// TaskDir returns the path of a task's directory. It does not create it: package
// statestore does, when it opens the task's store. The id has Kafka Streams' form
// <sub-topology>_<partition>.
func (d *Dir) TaskDir(taskID string) string { return filepath.Join(d.path, taskID) }

// TaskDirs returns the ids of the tasks that have a directory here, ordered by
// sub-topology and partition. Everything with another name is left out, and left alone.
func (d *Dir) TaskDirs() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list task directories: %w", err)
	}
	var tasks []taskName
	for _, e := range entries {
		if t, ok := parseTaskID(e.Name()); ok && e.IsDir() {
			tasks = append(tasks, t)
		}
	}
	return sortedTaskIDs(tasks), nil
}

// LinkedTaskDirs returns the ids of the tasks whose directory is a symbolic link to one, in the order of
// [Dir.TaskDirs]. They are used like others, but never removed: what a link leads to is not the application's alone.
func (d *Dir) LinkedTaskDirs() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list task directories: %w", err)
	}
	var tasks []taskName
	for _, e := range entries {
		t, ok := parseTaskID(e.Name())
		if !ok || e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if info, err := os.Stat(filepath.Join(d.path, e.Name())); err == nil && info.IsDir() {
			tasks = append(tasks, t)
		}
	}
	return sortedTaskIDs(tasks), nil
}

// Close releases the directory for other processes. Every task in it must be closed
// before. A second Close does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	if err := errors.Join(d.txnIDs.close(), lock.Close()); err != nil {
		return fmt.Errorf("close state directory %s: %w", d.path, err)
	}
	return nil
}
