package statedir

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestLook(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	for _, name := range []string{"1_0", "0_10", "0_2", "01_0", "lost+found", ".trash-17-0_5", ".trash-17-x"} {
		if err := os.MkdirAll(filepath.Join(d.Path(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(d.Path(), "2_0"), filepath.Join(root, "file")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "legacy", "0_0"), 0o700); err != nil {
		t.Fatal(err)
	}
	aside, err := d.SetAside("1_0", "because")
	if err != nil {
		t.Fatal(err)
	}
	apps, other, err := Look(root)
	if err != nil || len(apps) != 2 || !reflect.DeepEqual(other, []string{"empty", "file"}) {
		t.Fatalf("%+v, %q, %v", apps, other, err)
	}
	a := apps[0]
	if a.ID != "app" || a.Path != d.Path() || !reflect.DeepEqual(a.Tasks, []string{"0_2", "0_10"}) ||
		!reflect.DeepEqual(a.Other, []string{"01_0", "2_0", "lost+found"}) || len(a.Aside) != 1 || a.Aside[0].Path != aside {
		t.Errorf("%+v", a)
	}
	if want := []Trash{{"0_5", d.TaskDir(".trash-17-0_5")}, {"", d.TaskDir(".trash-17-x")}}; !reflect.DeepEqual(a.Trash, want) {
		t.Errorf("trash %+v, want %+v", a.Trash, want)
	}
	if h, ok, err := a.Holder(); !ok || err != nil || h.PID != os.Getpid() {
		t.Errorf("holder %v, %v, %v; this process has it open", h, ok, err)
	}
	if _, ok, err := apps[1].Holder(); ok || err != nil {
		t.Errorf("held %v, %v; nobody has the legacy directory open", ok, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := a.Holder(); ok || err != nil {
		t.Errorf("held %v, %v after Close", ok, err)
	}
	for path, want := range map[string]bool{root: false, d.Path(): true, filepath.Join(root, "empty"): false, filepath.Join(root, "none"): false} {
		if LooksLikeApp(path) != want {
			t.Errorf("%s looks like an application: %v", path, !want)
		}
	}
	if _, _, err := Look(filepath.Join(root, "none")); err == nil {
		t.Error("no error for a directory that is not there")
	}
}
