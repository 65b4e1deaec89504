package statedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// lastOwned reads the stamp that these tests keep in a file: hours ago.
func lastOwned(dir string) (time.Time, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stamp"))
	if err != nil {
		return time.Time{}, err
	}
	var hours int
	if _, err := fmt.Sscan(string(text), &hours); err != nil {
		return time.Time{}, fmt.Errorf("no stamp: %w", err)
	}
	return time.Now().Add(-time.Duration(hours) * time.Hour), nil
}

func makeTask(t *testing.T, root, task, stamp string) string {
	t.Helper()
	dir := filepath.Join(root, "app", task)
	for _, name := range []string{"stamp", "a", "b", "below/c"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(stamp), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// summary gives for each task whether it goes, and whether there is an error.
func summary(all []Cleaned) map[string]string {
	m := map[string]string{}
	for _, c := range all {
		m[c.Task] = map[bool]string{true: "goes", false: "stays"}[c.Remove]
		if c.Err != nil {
			m[c.Task] += ", error"
		}
	}
	return m
}

func TestClean(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	makeTask(t, root, "0_0", "1")
	makeTask(t, root, "0_1", "50")
	makeTask(t, root, "0_2", "50")
	makeTask(t, root, "0_3", "unreadable")
	for _, foreign := range []string{"00_1", "lost+found", "0_9.corrupt-20260101T000000Z"} {
		makeTask(t, root, foreign, "50")
	}
	// A young file time saves nothing, and an old one condemns nothing.
	old := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(d.TaskDir("0_0"), old, old); err != nil {
		t.Fatal(err)
	}
	lease, err := d.Lease("0_2", "a worker")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Lease("0_2", "another")
	wantError(t, err, "0_2", "a worker has it")
	want := map[string]string{"0_0": "stays", "0_1": "goes", "0_2": "stays, error", "0_3": "stays, error"}
	for _, dry := range []bool{true, false} {
		all, err := d.Clean(t.Context(), CleanOptions{OlderThan: 24 * time.Hour, LastOwned: lastOwned, DryRun: dry})
		if err != nil || !reflect.DeepEqual(summary(all), want) {
			t.Errorf("dry %v: %v, %v", dry, summary(all), err)
		}
		if _, err := os.Stat(d.TaskDir("0_1")); (err == nil) != dry {
			t.Errorf("dry %v: %v", dry, err)
		}
	}
	lease.Release()
	lease.Release()
	all, err := d.Clean(t.Context(), CleanOptions{OlderThan: 24 * time.Hour, LastOwned: lastOwned})
	want = map[string]string{"0_0": "stays", "0_2": "goes", "0_3": "stays, error"}
	if err != nil || !reflect.DeepEqual(summary(all), want) {
		t.Errorf("released: %v, %v", summary(all), err)
	}
	left := names(t, filepath.Join(root, "app"))
	wantLeft := []string{"00_1", "0_0", "0_3", "0_9.corrupt-20260101T000000Z", "lost+found", processIDFile, lockFile, transactionalIDsFile}
	if !reflect.DeepEqual(left, wantLeft) {
		t.Errorf("left %q, want %q", left, wantLeft)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if all, err := d.Clean(ctx, CleanOptions{LastOwned: lastOwned}); !errors.Is(err, context.Canceled) || len(all) != 0 {
		t.Errorf("cancelled: %v, %v", all, err)
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// mayGo says of a directory with a file "precious" in it that it must stay.
func mayGo(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "precious")); err == nil {
		return fmt.Errorf("%s is precious", dir)
	}
	return nil
}

// Nothing is removed while there is a directory that must stay, or one that is a link.
func TestRemoveAllSparesAll(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	d := open(t, root)
	makeTask(t, root, "0_0", "1")
	precious := filepath.Join(makeTask(t, root, "0_1", "1"), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, d.TaskDir("0_2")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ remove, want string }{{precious, "0_1 is precious"}, {d.TaskDir("0_2"), "0_2: a symbolic link"}} {
		wantError(t, d.RemoveAll(mayGo), step.want, "nothing is removed")
		wantError(t, d.Removable(mayGo), step.want)
		if tasks, err := d.TaskDirs(); err != nil || len(tasks) != 2 {
			t.Errorf("%q are left, %v", tasks, err)
		}
		if err := os.Remove(step.remove); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.RemoveAll(mayGo); err != nil {
		t.Error(err)
	}
}

func TestRemoveAll(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	makeTask(t, root, "0_0", "1")
	makeTask(t, root, "0_1", "1")
	lease, err := d.Lease("0_1", "a worker")
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, d.RemoveAll(mayGo), "0_1", "a worker has it")
	if tasks, err := d.TaskDirs(); err != nil || len(tasks) != 2 {
		t.Errorf("%q are left, %v: one is in use, so none should go", tasks, err)
	}
	lease.Release()
	if err := d.RemoveAll(mayGo); err != nil {
		t.Fatal(err)
	}
	if left, want := names(t, filepath.Join(root, "app")), []string{processIDFile, lockFile, transactionalIDsFile}; !reflect.DeepEqual(left, want) {
		t.Errorf("left %q", left)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Lease("0_0", "anybody")
	wantError(t, err, "closed")
}

func wantAnew(t *testing.T, d *Dir, want bool) {
	t.Helper()
	if got, err := d.Anew(); err != nil || got != want {
		t.Errorf("begins anew: %v, %v; want %v", got, err, want)
	}
}

func TestBeginAnew(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	wantAnew(t, d, false)
	for range 2 { // until an id is used, be it a new one or an old
		if err := d.BeginAnew(); err != nil {
			t.Fatal(err)
		}
		wantAnew(t, d, true)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, root)
		wantAnew(t, d, true)
		if err := d.RecordTransactionalID("app-0"); err != nil {
			t.Fatal(err)
		}
		wantAnew(t, d, false)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
