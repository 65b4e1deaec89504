package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what the migration knows of one disk.
type disk struct{ free, reserved int64 }

// reserveSpace gives the tasks, in their order, the space that their data will take: it is there twice until the old
// databases are removed, and tasks move at the same time. What does not fit beside the tasks before it is
// not begun. One measurement counts for all: nothing that is written here is given back before the end.
func (r *Report) reserveSpace() {
	disks := map[uint64]*disk{}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		need, err := t.needs()
		if err != nil || need == 0 {
			t.noSpace = err
			continue
		}
		id, free, known := diskOf(t.dir)
		if !known {
			continue
		}
		d := disks[id]
		if d == nil {
			d = &disk{free: free}
			disks[id] = d
		}
		if d.free-d.reserved < need {
			t.noSpace = fmt.Errorf("%s needs about %d MiB more on its disk to take the data over, and %d MiB are free, %d MiB of them for other tasks: make space",
				t.dir, mebibytes(need), d.free>>20, mebibytes(d.reserved))
			continue
		}
		d.reserved += need
	}
}

// needs is what the data of the stores to move will take.
func (t *Task) needs() (bytes int64, err error) {
	for _, e := range t.Entries {
		if e.Action != ActionMigrate {
			continue
		}
		for _, d := range t.stores {
			if d.store != e.Store {
				continue
			}
			n, err := sizeOf(d.path)
			if err != nil {
				return 0, err
			}
			bytes += n
		}
	}
	// A quarter more: the log and the tables of a flush exist side by side for a while.
	return bytes + bytes/4, nil
}

func mebibytes(n int64) int64 { return (n + 1<<20 - 1) >> 20 }

// diskOf tells which disk a directory lies on, and what this user may still write there. A variable, so that a test can
// have a small one.
var diskOf = diskOfDirectory

// sizeOf adds up the files below dir.
func sizeOf(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
