package streams_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/streams"
)

// Ways in which a task directory can be unusable and a start can make a new one.
var damagedDirs = map[string]func(dir string) error{
	"no manifest": func(dir string) error { return eachFile(dir, "MANIFEST-*", os.Remove) },
	"no markers":  func(dir string) error { return eachFile(dir, "marker.*", os.Remove) },
	"no tables":   func(dir string) error { return eachFile(dir, "*.sst", os.Remove) },
	"zeroed tables": func(dir string) error {
		return eachFile(dir, "*.sst", func(f string) error { return os.WriteFile(f, make([]byte, 500), 0o600) })
	},
	"a directory in place of a table": func(dir string) error {
		return eachFile(dir, "*.sst", func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) })
	},
	"a file in its place": func(dir string) error {
		return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("x"), 0o600))
	},
}

func eachFile(dir, pattern string, do func(string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no %s in %s", pattern, dir)
	}
	for _, f := range files {
		err = errors.Join(err, do(f))
	}
	return err
}

// The application starts whatever its task directories look like, and names those that it could
// not read: directories of tasks that do not run here, and one of a task that does.
func TestStartWithDamagedDirectories(t *testing.T) {
	t.Parallel()
	for kind, damage := range damagedDirs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testbroker.Kfake(t), clients[0])
			in, want := lines(200)
			e.produce(in...)
			app := e.start(e.wordCount(), e.config())
			app.catchUp()
			if scan := app.Scan(); scan == nil || len(scan.Failed) > 0 {
				t.Errorf("the first start: %+v", scan)
			}
			app.close()
			own := filepath.Join(e.dir, e.app, "1_0")
			var damaged []string
			for i := range 3 {
				left := filepath.Join(e.dir, e.app, fmt.Sprintf("7_%d", i)) // of a sub-topology that is no more
				if err := errors.Join(os.CopyFS(left, os.DirFS(own)), damage(left)); err != nil {
					t.Fatal(err)
				}
				damaged = append(damaged, left)
			}
			if err := damage(own); err != nil {
				t.Fatal(err)
			}
			damaged = append(damaged, own)
			e.produce(in...)
			app = e.start(e.wordCount(), e.config())
			app.catchUp()
			checkFailed(t, app.App, damaged)
			if info, err := os.Stat(damaged[2]); err != nil || !info.IsDir() {
				damaged = nil // of something else there is no directory to name
			}
			if unknown := app.Scan().Unknown; damaged != nil && (len(unknown) != 3 || unknown[2].Task != "7_2" || unknown[2].Path != damaged[2]) {
				t.Errorf("unknown: %+v", unknown)
			}
			app.close()
			for w := range want {
				want[w] *= 2
			}
			got, _ := e.counts(e.out)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counts: -want +got\n%s", diff)
			}
		})
	}
}

func checkFailed(t *testing.T, app *streams.App, damaged []string) {
	t.Helper()
	scan := app.Scan()
	if scan.Opened == 0 || len(scan.Failed) != len(damaged) {
		t.Errorf("%d opened, failed: %v", scan.Opened, scan.Failed)
	}
	for _, f := range scan.Failed {
		if !slices.Contains(damaged, f.Path) || f.Task != filepath.Base(f.Path) || !strings.Contains(f.Err.Error(), f.Path) {
			t.Errorf("%+v", f)
		}
	}
}

// A task's directory may be a link to one on another disk: its state is found and used.
func TestStartWithLinkedDirectory(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	in, _ := lines(100)
	e.produce(in...)
	app := e.start(e.wordCount(), e.config())
	app.catchUp()
	app.close()
	dir, elsewhere := filepath.Join(e.dir, e.app, "1_0"), filepath.Join(t.TempDir(), "other-disk")
	if err := errors.Join(os.Rename(dir, elsewhere), os.Symlink(elsewhere, dir)); err != nil {
		t.Fatal(err)
	}
	app = e.start(e.wordCount(), e.config())
	app.catchUp()
	if scan := app.Scan(); scan.Opened != 4 || scan.Empty > 0 || len(scan.Failed) > 0 {
		t.Errorf("%+v", scan)
	}
	for _, w := range app.Status().Workers {
		for _, task := range w.Tasks {
			for _, r := range task.Restore {
				if r.Records != 0 {
					t.Errorf("task %v restored %+v", task.ID, r)
				}
			}
		}
	}
	app.close()
}

// A directory of a sub-topology that the topology does not have is listed, said in the log, and left as it is, whatever is in
// it; that of one that it has is not.
func TestDirectoriesOfARemovedSubtopology(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	in, _ := lines(20)
	e.produce(in...)
	app := e.start(e.wordCount(), e.config())
	app.catchUp()
	app.close()
	root := filepath.Join(e.dir, e.app)
	if err := errors.Join(os.CopyFS(filepath.Join(root, "7_0"), os.DirFS(filepath.Join(root, "1_0"))), os.Mkdir(filepath.Join(root, "2_0"), 0o700),
		os.WriteFile(filepath.Join(root, "2_0", "x"), []byte("x"), 0o600), os.Symlink(t.TempDir(), filepath.Join(root, "9_1"))); err != nil {
		t.Fatal(err)
	}
	before := allFiles(t, filepath.Join(root, "7_0"))
	var log testlog.Log
	cfg := e.config()
	cfg.Logger = log.Logger()
	app = e.start(e.wordCount(), cfg)
	app.catchUp()
	var got []string
	for _, d := range app.Scan().Unknown {
		got = append(got, d.Task)
	}
	if want := []string{"2_0", "7_0", "9_1"}; !slices.Equal(got, want) {
		t.Errorf("unknown: %q, want %q", got, want)
	}
	if text := log.String(); !strings.Contains(text, "does not have") || !strings.Contains(text, "2_0 7_0 9_1") {
		t.Errorf("the log does not name them: %s", text)
	}
	app.close()
	if diff := cmp.Diff(before, allFiles(t, filepath.Join(root, "7_0"))); diff != "" {
		t.Errorf("7_0 was changed:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(root, "2_0", "x")); err != nil {
		t.Error(err)
	}
}

func allFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
