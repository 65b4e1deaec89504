package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fixtures = "../../migration/testdata/legacy"

// tidemark runs the program as main does.
func tidemark(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// migrateJSON is the form that scripts rely on.
type migrateJSON struct {
	Tasks []struct {
		Task  string `json:"task"`
		Files []struct {
			Path, Kind, Status, Reason string
		} `json:"files"`
		Entries []struct {
			Topic     string `json:"topic"`
			Partition int    `json:"partition"`
			State     string `json:"state"`
			Raw       *int64 `json:"raw"`
			Next      *int64 `json:"next_offset"`
			Store     string `json:"store"`
			Action    string `json:"action"`
			Reason    string `json:"reason"`
		} `json:"entries"`
		Positions []struct {
			Store     string `json:"store"`
			Topic     string `json:"topic"`
			Partition int    `json:"partition"`
			Next      int64  `json:"next_offset"`
			Raw       int64  `json:"raw"`
		} `json:"positions"`
	} `json:"tasks"`
	OK bool `json:"ok"`
}

func parseMigrateJSON(t *testing.T, text string) migrateJSON {
	t.Helper()
	var m migrateJSON
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

func TestMigrateJSON(t *testing.T) {
	dir := filepath.Join(fixtures, "standby-420-alos-clean", "a")
	code, stdout, stderr := tidemark("migrate", dir, "--guarantee", "at-least-once", "--dry-run", "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %s", code, stderr)
	}
	m := parseMigrateJSON(t, stdout)
	if len(m.Tasks) != 5 || !m.OK || m.Tasks[0].Files[0].Kind != "process" {
		t.Fatalf("%+v", m)
	}
	task := m.Tasks[3]
	if task.Task != "0_2" || len(task.Entries) != 1 || len(task.Positions) != 1 || len(task.Files) != 2 {
		t.Fatalf("%+v", task)
	}
	e, p := task.Entries[0], task.Positions[0]
	if e.Topic != "standby-420-alos-clean-kv-changelog" || e.Partition != 2 || e.State != "at" || *e.Raw != 1109 || *e.Next != 1110 ||
		e.Store != "kv" || e.Action != "restore" || !strings.Contains(e.Reason, "about 1110 records") {
		t.Errorf("entry %+v", e)
	}
	if p.Store != "kv" || p.Topic != "standby-420-alos-clean-in" || p.Partition != 2 || p.Raw != 739 || p.Next != 740 {
		t.Errorf("position %+v", p)
	}
}

func TestMigrateTable(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	writeFiles := map[string]string{
		".checkpoint": "0\n3\napp-kv-changelog 0 41\nin 0 7\napp-new-changelog 0 -4\n",
		"kv.position": "broken",
	}
	if err := os.MkdirAll(task, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range writeFiles {
		if err := os.WriteFile(filepath.Join(task, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := tidemark("migrate", "--dry-run", dir, "--map", "in=a", "--map", "in=b")
	want := strings.ReplaceAll(`TASK  STORE  CHANGELOG PARTITION  LEGACY  NEXT     ACTION   REASON
0_0   kv     app-kv-changelog-0   41      42?      restore  nothing proves a clean shutdown under exactly-once, the data may hold aborted records, and no data beside the file: restore from changelog app-kv-changelog, about 42 records
0_0   new    app-new-changelog-0  -4      unknown  restore  clean, but at an unknown offset, and no data beside the file: restore from changelog app-new-changelog into an empty store
0_0   a      in-0                 7       8?       restore  nothing proves a clean shutdown under exactly-once, the data may hold aborted records, and no data beside the file: restore from changelog in, about 8 records
0_0   b      in-0                 7       8?       restore  nothing proves a clean shutdown under exactly-once, the data may hold aborted records, and no data beside the file: restore from changelog in, about 8 records
?: the file says so, and is not believed

FILE                   STATUS       REASON
DIR/app/0_0/kv.position  quarantined  line 1: version "broken" is not a number
`, "DIR", dir)
	// The width of the last table depends on the directory.
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(stdout)); diff != "" || code != exitProblems {
		t.Errorf("code %d (-want +got):\n%s", code, diff)
	}
	if names, err := os.ReadDir(task); err != nil || len(names) != len(writeFiles) {
		t.Errorf("a dry run left %v, %v", names, err)
	}
	code, _, _ = tidemark("migrate", dir)
	if code != exitProblems {
		t.Errorf("code %d", code)
	}
	if _, err := os.Stat(filepath.Join(task, ".checkpoint.migrated")); err != nil {
		t.Error(err)
	}
	if code, stdout, stderr := tidemark("migrate", dir, "--json"); code != exitOK || !parseMigrateJSON(t, stdout).OK {
		t.Errorf("the second time: code %d, %s", code, stderr)
	}
}

func TestMigrateCannotRun(t *testing.T) {
	empty, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{"a/0_0", "b/0_0"} {
		if err := os.MkdirAll(filepath.Join(two, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{}, "usage: tidemark migrate"},
		{[]string{empty, empty}, "usage: tidemark migrate"},
		{[]string{empty}, "there is no application in it"},
		{[]string{filepath.Join(empty, "nowhere")}, "no such file"},
		{[]string{two}, "say which of a, b"},
		{[]string{two, "--app", "c"}, `no directory of the application "c"`},
		{[]string{two, "--app", "a", "--guarantee", "maybe"}, `"maybe" is neither at-least-once nor exactly-once`},
		{[]string{two, "--map", "x"}, "TOPIC=STORE"},
		{[]string{two, "--jobs", "-1"}, "-1 jobs"},
	} {
		code, stdout, stderr := tidemark(append([]string{"migrate"}, test.args...)...)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, test.says) {
			t.Errorf("%q: code %d, %q, %q", test.args, code, stdout, stderr)
		}
	}
	if code, _, stderr := tidemark("migrate", "-h"); code != exitOK || !strings.Contains(stderr, "-clean-shutdown") {
		t.Errorf("help: code %d, %s", code, stderr)
	}
}
