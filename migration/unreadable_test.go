package migration

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file that is there and cannot be read is not a missing one: nothing of its task is touched, other tasks
// go on, and when it can be read all is done. (A link to itself is something that root cannot read
// either.)
func TestUnreadableFiles(t *testing.T) {
	for _, name := range []string{checkpointName, "kv0" + positionSuffix, storeCheckpoint + "kv0"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			task := legacyTask(t, dir, 0, 50)
			other := filepath.Join(dir, "app", "0_1")
			must(t, os.MkdirAll(other, 0o700))
			must(t, os.WriteFile(filepath.Join(other, checkpointName), []byte("0\n0\n"), 0o600))
			path := filepath.Join(task, name)
			original, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				original, err = []byte("0\n0\n"), nil
			}
			must(t, err)
			_ = os.Remove(path)
			must(t, os.Symlink(path, path))
			o := Options{CleanShutdown: true, Logger: quiet}
			before := regularFiles(t, task)
			r, err := Apply(t.Context(), dir, o)
			must(t, err)
			f := fileOf(t, r, path)
			if r.OK || f.Status != StatusUnreadable || f.Reason == "" || !strings.Contains(strings.Join(r.Notes, "\n"), path) {
				t.Errorf("ok %v, %+v, notes %q", r.OK, f, r.Notes)
			}
			if diff := cmp.Diff(before, regularFiles(t, task)); diff != "" {
				t.Errorf("changed:\n%s", diff)
			}
			if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the file itself: %v, %v", info, err)
			}
			if !exists(t, filepath.Join(other, checkpointName+migratedSuffix)) {
				t.Error("the other task did not go on")
			}
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, original, 0o600))
			if r, err := Apply(t.Context(), dir, o); err != nil || !r.OK {
				t.Errorf("when it can be read: %v, %+v", err, r)
			}
			if diff := cmp.Diff(wantContent(0, 50), contentOf(t, task)); diff != "" && name != storeCheckpoint+"kv0" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func regularFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	maps.DeleteFunc(all, func(path, _ string) bool { return filepath.Base(path) == "LOCK" })
	return all
}
