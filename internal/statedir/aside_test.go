package statedir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSetAside(t *testing.T) {
	d := open(t, t.TempDir())
	mkdir := func(content string) {
		t.Helper()
		if err := os.MkdirAll(d.TaskDir("0_1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.TaskDir("0_1"), "data"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, content := range []string{"first", "second", "third"} { // within one second, mostly
		mkdir(content)
		path, err := d.SetAside("0_1", "block 7 is damaged")
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
		if b, err := os.ReadFile(filepath.Join(path, "data")); err != nil || string(b) != content {
			t.Errorf("%s holds %q, %v; want %q", path, b, err, content)
		}
		if _, err := os.Stat(d.TaskDir("0_1")); err == nil {
			t.Error("the task's directory is still there")
		}
	}
	tasks, err := d.TaskDirs()
	if err != nil || len(tasks) != 0 {
		t.Errorf("tasks %v, %v; what was set aside is none", tasks, err)
	}
	aside, err := d.AsideDirs()
	if err != nil || len(aside) != 3 {
		t.Fatalf("%v, %v; want all three", aside, err)
	}
	for _, a := range aside {
		if !slices.Contains(paths, a.Path) {
			t.Errorf("%s was never given as a path: %v", a.Path, paths)
		}
		if a.Task != "0_1" || !strings.Contains(a.Reason, "block 7 is damaged") || !strings.HasPrefix(filepath.Base(a.Path), "0_1.corrupt-") {
			t.Errorf("%+v", a)
		}
	}
	for _, id := range []string{"0_2", "..", "process-id", "0_1.corrupt-x"} {
		if path, err := d.SetAside(id, ""); err == nil || !strings.Contains(err.Error(), id) {
			t.Errorf("set aside %q: %q, %v; want an error with the name", id, path, err)
		}
	}
}
