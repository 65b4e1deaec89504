package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

// Sweep removes from a task directory what a migration has renamed to *.migrated. Call it
// after the task's store was closed cleanly: only then has it been seen to work without
// them. It leaves everything where the migration was told to keep it, and the files beside
// RocksDB data: with them the application can go back to Kafka Streams. What was
// quarantined stays too.
func Sweep(taskDir string) error {
	if kept, err := IsKept(taskDir); kept || err != nil {
		return err
	}
	entries, err := os.ReadDir(taskDir)
	if err != nil {
		return fmt.Errorf("remove migrated files: %w", err)
	}
	var files []string
	keepFiles := false
	var errs []error
	for _, e := range entries {
		path := filepath.Join(taskDir, e.Name())
		if e.IsDir() {
			rocks, err := sweepFolder(path, e.Name())
			keepFiles, errs = keepFiles || rocks || err != nil, append(errs, err)
		} else if isMigrated(e.Name()) {
			files = append(files, path)
		}
	}
	if !keepFiles {
		for _, path := range files {
			errs = append(errs, os.Remove(path))
			failpoint.Hit("migration-swept")
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove migrated files of %s: %w", taskDir, err)
	}
	return nil
}

// sweepFolder removes the migrated databases below one folder of a task directory, and the
// folder when nothing else was in it. rocks tells whether there is RocksDB data.
func sweepFolder(path, folder string) (rocks bool, err error) {
	stores, err := findIn(path, folder)
	if err != nil {
		return false, err
	}
	for _, d := range stores {
		rocks = rocks || d.engine == engineRocksDB
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return rocks, err
	}
	removed := 0
	for _, e := range entries {
		if isMigrated(e.Name()) {
			// Stopped anywhere, what is left still has the name of what was migrated, and the next sweep goes on.
			if err := failpoint.RemoveAll(filepath.Join(path, e.Name()), "migration-sweeping"); err != nil {
				return rocks, err
			}
			removed++
		}
	}
	if removed > 0 && removed == len(entries) {
		return rocks, os.Remove(path)
	}
	return rocks, nil
}

// IsKept tells whether a migration was told to keep what it has renamed in a task directory: nobody may
// remove that, nor the directory.
func IsKept(taskDir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(taskDir, keepName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
