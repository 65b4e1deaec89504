package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func benchJSON(t *testing.T, wantCode int, args ...string) benchResult {
	t.Helper()
	code, stdout, stderr := tidemark(append([]string{"bench", "open", "--json"}, args...)...)
	if code != wantCode {
		t.Fatalf("code %d: %s", code, stderr)
	}
	var r benchResult
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return r
}

func TestBenchOpen(t *testing.T) {
	dir := t.TempDir()
	r := benchJSON(t, exitOK, "--tasks", "5", "--store-bytes", "50000", "--parallel", "2", "--dir", dir)
	if r.Tasks != 5 || r.StoreBytes != 50000 || r.Parallel != 2 || r.Failed != 0 || r.ScanMS <= 0 || r.P50 <= 0 || r.P99 < r.P50 ||
		r.Max < r.P99 || r.RWMS <= 0 || r.Speedup <= 0 || r.Replayed != 0 || r.RWTasks != 5 {
		t.Errorf("%+v", r)
	}
	manifests, err := filepath.Glob(filepath.Join(benchApp(dir), "0_3", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, m := range manifests {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	if r := benchJSON(t, exitProblems, "--tasks", "5", "--dir", dir); r.Failed != 1 { // the same directories
		t.Errorf("%+v", r)
	}
}

func TestBenchOpenDirty(t *testing.T) {
	r := benchJSON(t, exitOK, "--tasks", "3", "--store-bytes", "300000", "--dirty")
	if r.Replayed < 3*300000 || !r.Dirty || r.Failed != 0 || r.ReplayMS <= 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(r.Directory); err == nil {
		t.Errorf("%s was left behind", r.Directory)
	}
	if code, stdout, _ := tidemark("bench", "open", "--tasks", "1", "--store-bytes", "1"); code != exitOK || !strings.Contains(stdout, "closed cleanly") {
		t.Errorf("code %d, %s", code, stdout)
	}
}

// What a run reports is what the directories hold, however often they are measured, and they stay as they are.
func TestBenchOpenAgain(t *testing.T) {
	dir := t.TempDir()
	first := benchJSON(t, exitOK, "--tasks", "3", "--store-bytes", "200000", "--dirty", "--dir", dir)
	before := contents(t, benchApp(dir))
	for _, args := range [][]string{{}, {"--dirty"}, {"--store-bytes", "200000"}, {"--tasks", "2"}, {"--tasks", "4"}} {
		r := benchJSON(t, exitOK, append(args, "--dir", dir)...)
		if want := first.Replayed / 3 * int64(r.Tasks); !r.Dirty || r.StoreBytes != 200000 || r.Replayed != want || r.RWMS <= 0 {
			t.Errorf("%q: %+v; want %d bytes replayed", args, r, want)
		}
		if len(args) > 0 && args[0] == "--tasks" && fmt.Sprint(r.Tasks) != args[1] || len(args) == 0 && r.Tasks != 3 {
			t.Errorf("%q: %d tasks", args, r.Tasks)
		}
	}
	after := contents(t, benchApp(dir))
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s was changed", path)
		}
	}
	for _, args := range [][]string{{"--store-bytes", "100"}, {"--dirty=false"}} {
		if code, _, stderr := tidemark(append([]string{"bench", "open", "--dir", dir}, args...)...); code != exitFailed || !strings.Contains(stderr, "--store-bytes 200000 --dirty=true") {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("left in it: %v, %v", names, err)
	}
}

// An application's own directories are measured as they are, and nothing is put beside them.
func TestBenchOpenAnApplications(t *testing.T) {
	dir := t.TempDir()
	for _, task := range []string{"0_0", "1_7"} {
		ownedTask(t, dir, task, time.Hour)
	}
	before := contents(t, dir)
	for _, d := range []string{dir, filepath.Join(dir, "app")} {
		r := benchJSON(t, exitOK, "--dir", d)
		if r.Tasks != 2 || r.Dirty || r.StoreBytes < 100 || r.StoreBytes > 1<<20 || r.Failed != 0 || r.RWTasks != 2 || r.RWMS <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "letter"), nil, 0o600))
	for _, args := range [][]string{{"--dir", other}, {"--dir", dir, "--dirty"}, {"--dir", dir, "--store-bytes", "5"}} {
		if code, _, stderr := tidemark(append([]string{"bench", "open"}, args...)...); code != exitFailed || stderr == "" {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
}

func TestBenchCannotRun(t *testing.T) {
	for _, args := range [][]string{{}, {"close"}, {"open", "--tasks", "0"}, {"open", "--parallel", "-1"}} {
		if code, _, stderr := tidemark(append([]string{"bench"}, args...)...); code != exitFailed || !strings.Contains(stderr, "usage: tidemark bench open") {
			t.Errorf("%q: code %d, %s", args, code, stderr)
		}
	}
}
