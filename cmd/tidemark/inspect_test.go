package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/statedir"
)

// everythingBeside makes a state directory with all that is not a task store.
func everythingBeside(t *testing.T) (root string, app *statedir.Dir) {
	t.Helper()
	root = t.TempDir()
	app, err := statedir.Open(root, "app")
	must(t, err)
	t.Cleanup(func() { _ = app.Close() })
	write := func(path, content string) {
		path = filepath.Join(app.Path(), path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write("0_0/.checkpoint", "0\n1\napp-counts-changelog 0 41\n")
	write("0_0/counts.position", "9\n")
	write("0_0/rocksdb/counts/CURRENT", "MANIFEST-000004\n")
	write("0_0/rocksdb/counts/IDENTITY", "x")
	write("0_1/.checkpoint.migrated", "0\n0\n")
	write("0_1/names.position.quarantined-20260102T030405", "?")
	write("0_1/stores/names.migrated-2/CURRENT", "")
	write("0_2/MANIFEST-000001", "damaged")
	write(".trash-1700000000000000000-0_7/000001.sst", "12345")
	write("global/.checkpoint", "0\n1\nprices 0 7\n")
	write("kafka-streams-process-metadata", `{"processId":"?"}`)
	_, err = app.SetAside("0_2", "the manifest is torn:\nat its first record")
	must(t, err)
	return root, app
}

func TestInspectShowsWhatLiesBesideTheStores(t *testing.T) {
	root, _ := everythingBeside(t)
	golden(t, "inspect-beside.txt", root, want(t, exitOK, "trash: ", "", "inspect", root))
	var in inspection
	must(t, json.Unmarshal([]byte(want(t, exitOK, "{", "", "inspect", root, "--json")), &in))
	a := in.Apps[0]
	host, err := os.Hostname()
	must(t, err)
	if a.Lock == nil || a.Lock.PID != os.Getpid() || a.Lock.Host != host || a.Lock.Start == nil {
		t.Errorf("lock %+v", a.Lock)
	}
	if len(a.Aside) != 1 || a.Aside[0].Task != "0_2" || !strings.Contains(a.Aside[0].Reason, "torn") {
		t.Errorf("set aside: %+v", a.Aside)
	}
	wantTrash := []trashedTask{{Task: "0_7", Path: filepath.Join(a.Path, ".trash-1700000000000000000-0_7"), Bytes: 5}}
	if d := cmp.Diff(wantTrash, a.Trash); d != "" {
		t.Errorf("trash (-want +got):\n%s", d)
	}
	got := map[string]string{}
	for _, f := range a.Legacy {
		got[f.Path] = f.Kind + " " + f.Status
	}
	for _, task := range a.Tasks {
		for _, f := range task.Legacy {
			got[task.Task+" "+f.Path] = strings.TrimSpace(f.Engine+" "+f.Kind) + " " + f.Store + " " + f.Status
		}
	}
	wantFiles := map[string]string{
		"kafka-streams-process-metadata": "process quarantined", "global/.checkpoint": "checkpoint ok",
		"0_0 .checkpoint": "checkpoint  ok", "0_0 counts.position": "position counts quarantined", "0_0 rocksdb/counts": "RocksDB database counts ok",
		"0_1 .checkpoint.migrated": "checkpoint  migrated", "0_1 names.position.quarantined-20260102T030405": "position names quarantined",
		"0_1 stores/names.migrated-2": "database names migrated",
	}
	if d := cmp.Diff(wantFiles, got); d != "" {
		t.Errorf("legacy files (-want +got):\n%s", d)
	}
}

func TestInspectWithoutAHolder(t *testing.T) {
	root, app := everythingBeside(t)
	must(t, app.Close())
	var in inspection
	must(t, json.Unmarshal([]byte(want(t, exitOK, "{", "", "inspect", root, "--json")), &in))
	if in.Apps[0].Lock != nil || in.Apps[0].InUse != "" {
		t.Errorf("nobody holds it: %+v", in.Apps[0])
	}
}

// A legacy file that cannot be read stops nothing, and is a problem of its task.
func TestInspectUnreadableLegacyFile(t *testing.T) {
	root, app := stateDir(t)
	path := filepath.Join(app.TaskDir("1_0"), ".checkpoint")
	must(t, os.Remove(path))
	must(t, os.Symlink(path, path)) // root cannot read that either
	want(t, exitProblems, "a legacy file cannot be read", "", "inspect", root)
}
