package migration

import (
	"os"
	"path/filepath"
	"slices"
)

// HasLegacy tells whether a task directory holds legacy files or databases that no
// migration has dealt with. Data that can only be restored from the changelog counts
// while its files are there.
func HasLegacy(taskDir string) (bool, error) {
	entries, err := os.ReadDir(taskDir)
	if err != nil {
		return false, err
	}
	p := &taskPlan{Task: &Task{dir: taskDir}}
	folders := false
	for _, e := range entries {
		_, kind, isFile := p.storeFile(e.Name())
		if isFile && kind == KindPosition && !e.IsDir() || e.Name() == checkpointName {
			return true, nil
		}
		// .checkpoint_<store> is also how a user's own store keeps its offset in Tidemark, but never like this.
		if isFile && kind == KindCheckpointStore && !e.IsDir() {
			if f, _ := readOffsetFile(filepath.Join(taskDir, e.Name()), kind); f.Status == StatusQuarantined {
				return true, nil
			}
		}
		folders = folders || isDir(taskDir, e)
	}
	if !folders {
		return false, nil
	}
	stores, err := findStores(taskDir)
	return slices.ContainsFunc(stores, func(d storeDir) bool { return d.readable() }), err
}
