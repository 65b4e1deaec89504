package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/legacyfixture"
)

// facts gives what the JSON says of a task, in the form of the manifests.
func (m migrateJSON) facts(t *testing.T, task string) legacyfixture.Facts {
	t.Helper()
	f := legacyfixture.NewFacts()
	found := false
	for _, x := range m.Tasks {
		if x.Task != task {
			continue
		}
		found = true
		for _, e := range x.Entries {
			tp := fmt.Sprintf("%s-%d", e.Topic, e.Partition)
			switch {
			case e.Store == "" && e.Action != "none" || e.Store != "" && e.Action != "restore" && e.Action != "skip" || e.Reason == "":
				t.Errorf("entry %+v", e)
			case e.Store == "":
				f.Unknown[tp] = legacyfixture.Number(e.Raw)
			case e.State != "absent":
				f.Entries[e.Store+" "+tp] = fmt.Sprintf("%s %s %s", e.State, legacyfixture.Number(e.Raw), legacyfixture.Number(e.Next))
			}
		}
		for _, p := range x.Positions {
			f.Positions[fmt.Sprintf("%s %s-%d", p.Store, p.Topic, p.Partition)] = fmt.Sprintf("%d %d", p.Raw, p.Next)
		}
	}
	if !found {
		t.Errorf("no task %s", task)
	}
	return f
}

// Every directory that a real application left, through the program: planned, done, and once more.
func TestMigrateFixtures(t *testing.T) {
	all, err := legacyfixture.Directories(fixtures)
	must(t, err)
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			dir, err := d.Build(t.TempDir())
			must(t, err)
			args := []string{"migrate", dir, "--json", "--guarantee", d.ProducedBy.Guarantee}
			for topic, stores := range d.Maps() {
				for _, store := range stores {
					args = append(args, "--map", topic+"="+store)
				}
			}
			before := contents(t, dir)
			checkFixture(t, d, args, "--dry-run")
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("the dry run changed something:\n%s", diff)
			}
			checkFixture(t, d, args)
			for _, e := range d.Tree {
				moved := filepath.Base(e.Path) == ".checkpoint" || strings.HasSuffix(e.Path, ".position")
				if _, err := os.Lstat(filepath.Join(dir, e.Path)); (err != nil) != moved {
					t.Errorf("%s: %v", e.Path, err)
				}
				if _, err := os.Lstat(filepath.Join(dir, e.Path+".migrated")); (err == nil) != moved {
					t.Errorf("%s.migrated: %v", e.Path, err)
				}
			}
			code, stdout, stderr := tidemark(args...)
			if m := parseMigrateJSON(t, stdout); code != exitOK || !m.OK {
				t.Errorf("once more: code %d, %s", code, stderr)
			}
		})
	}
}

func checkFixture(t *testing.T, d legacyfixture.Directory, args []string, more ...string) {
	t.Helper()
	code, stdout, stderr := tidemark(slices.Concat(args, more)...)
	m := parseMigrateJSON(t, stdout)
	if code != exitOK || !m.OK || len(m.Tasks) != len(d.Tasks)+1 {
		t.Fatalf("%q: code %d, ok %v, %d tasks, %s", more, code, m.OK, len(m.Tasks), stderr)
	}
	for _, want := range d.Tasks {
		believed := d.ProducedBy.Guarantee == "at_least_once" || want.Dirty == "no"
		if diff := cmp.Diff(want.Facts(believed), m.facts(t, want.Task)); diff != "" {
			t.Errorf("%q, task %s (-want +got):\n%s", more, want.Task, diff)
		}
		if status := m.file(want.Task, ".checkpoint"); (status == "ok") != want.CheckpointFile || (status == "absent") == want.CheckpointFile {
			t.Errorf("%q, task %s: .checkpoint is %q", more, want.Task, status)
		}
	}
}

// file gives the status of a task's file.
func (m migrateJSON) file(task, name string) string {
	for _, x := range m.Tasks {
		for _, f := range x.Files {
			if x.Task == task && filepath.Base(f.Path) == name {
				return f.Status
			}
		}
	}
	return "not named"
}

// contents gives the names and contents below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// Every malformed file, as .checkpoint and as .checkpoint_<store>, through the program.
func TestMigrateMalformedFixtures(t *testing.T) {
	cases, err := legacyfixture.MalformedFiles(filepath.Join(fixtures, "..", "malformed"))
	must(t, err)
	for name, c := range cases {
		if c.Content == nil {
			continue // a shape that is no file
		}
		for _, file := range []string{".checkpoint", ".checkpoint_own"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "app", "0_0", file)
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, c.Content, 0o600))
				before := contents(t, dir)
				checkMalformed(t, dir, file, c, "--dry-run")
				if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
					t.Errorf("the dry run changed something:\n%s", diff)
				}
				checkMalformed(t, dir, file, c)
				kept, err := filepath.Glob(path + map[bool]string{true: ".quarantined-*", false: "*"}[c.Entries == nil])
				must(t, err)
				if len(kept) != 1 {
					t.Fatalf("kept: %q", kept)
				}
				if text, err := os.ReadFile(kept[0]); err != nil || string(text) != string(c.Content) {
					t.Errorf("%s is not as it was: %v", kept[0], err)
				}
			})
		}
	}
}

func checkMalformed(t *testing.T, dir, file string, c legacyfixture.Malformed, more ...string) {
	t.Helper()
	code, stdout, stderr := tidemark(slices.Concat([]string{"migrate", dir, "--json", "--guarantee", "at-least-once"}, more)...)
	m := parseMigrateJSON(t, stdout)
	bad := c.Entries == nil
	if want := map[bool]int{true: exitProblems, false: exitOK}[bad]; code != want || m.OK == bad {
		t.Errorf("%q: code %d, ok %v (%s): %s", more, code, m.OK, c.Migrator, stderr)
	}
	if status, want := m.file("0_0", file), map[bool]string{true: "quarantined", false: "ok"}[bad]; status != want {
		t.Errorf("%q: the file is %q, want %q (%s)", more, status, want, c.Migrator)
	}
	got := map[string]int64{}
	for _, x := range m.Tasks {
		for _, e := range x.Entries {
			if e.Raw != nil && (*e.Raw >= 0 || *e.Raw == -4) {
				got[fmt.Sprintf("%s-%d", e.Topic, e.Partition)] = *e.Raw
			}
		}
	}
	want := c.Entries
	if want == nil {
		want = map[string]int64{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q: entries (-want +got):\n%s\n%s", more, diff, stdout)
	}
	if !json.Valid([]byte(stdout)) {
		t.Errorf("no JSON: %s", stdout)
	}
}
