package migration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Tasks move at the same time, and the originals stay: what counts is what they need together, on each disk.
func TestSpaceForAllTasks(t *testing.T) {
	dir := t.TempDir()
	var need int64
	for partition := range 4 {
		task := legacyTask(t, dir, partition, 2000)
		n, err := sizeOf(task)
		must(t, err)
		need = n + n/4
	}
	measured := 0
	diskOf = func(dir string) (uint64, int64, bool) {
		measured++
		if filepath.Base(dir) == "0_3" {
			return 2, need, true // a disk of its own, behind a link
		}
		return 1, need * 5 / 2, true
	}
	defer func() { diskOf = diskOfDirectory }()
	planned, err := Plan(t.Context(), dir, Options{CleanShutdown: true})
	must(t, err)
	if !planned.OK || measured > 0 {
		t.Errorf("planned: ok %v, notes %q", planned.OK, planned.Notes)
	}
	r, err := Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	must(t, err)
	if len(r.Notes) != 1 || r.OK || !strings.Contains(r.Notes[0], "task 0_2") || !strings.Contains(r.Notes[0], "make space") {
		t.Errorf("ok %v, notes %q", r.OK, r.Notes)
	}
	for partition := range 4 {
		task := filepath.Join(dir, "app", fmt.Sprintf("0_%d", partition))
		if moved := exists(t, filepath.Join(task, checkpointName+migratedSuffix)); moved != (partition != 2) {
			t.Errorf("%s: moved %v", task, moved)
		}
	}
	r, err = Apply(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	if err != nil || !r.OK {
		t.Errorf("the rest: %v, notes %q", err, r.Notes)
	}
}
