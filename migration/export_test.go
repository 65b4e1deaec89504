package migration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore"
)

func TestExport(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_7")
	s, err := statestore.Open(task, statestore.Options{})
	must(t, err)
	kv := func(name, changelog string) statestore.Spec {
		return statestore.Spec{Name: name, Kind: statestore.KindKeyValue, Changelog: changelog}
	}
	must(t, s.Register(kv("a", "app-a-changelog"), kv("b", "app-b-changelog"), kv("new", "app-new-changelog"), kv("unlogged", "")))
	must(t, s.Restore("a", []statestore.RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}, 42))
	must(t, s.Restore("b", nil, 0))
	must(t, s.Close())
	must(t, os.Mkdir(filepath.Join(dir, "app", "0_8"), 0o700))
	for range 2 { // the second time replaces the first file
		all, err := Export(t.Context(), dir, Options{Logger: quiet})
		must(t, err)
		if len(all) != 2 || all[0].Err != nil || !errors.Is(all[1].Err, statestore.ErrNoStore) {
			t.Fatalf("%+v", all)
		}
		got, err := os.ReadFile(filepath.Join(task, checkpointName))
		must(t, err)
		want := "0\n3\napp-a-changelog 7 41\napp-b-changelog 7 -4\napp-new-changelog 7 -4\n"
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	// The way there and back: it is what a migration reads, and it does not take it again.
	r, err := Plan(t.Context(), dir, Options{CleanShutdown: true, Logger: quiet})
	must(t, err)
	if e := entryOf(t, r, "0_7", "app-a-changelog", 7); e.State != StateAt || *e.NextOffset != 42 || e.Action != ActionSkip {
		t.Errorf("%+v", e)
	}
}

// A file that speaks of state elsewhere is not replaced.
func TestExportKeepsLegacyFiles(t *testing.T) {
	dir := t.TempDir()
	task := legacyTask(t, dir, 0, 5)
	s, err := statestore.Open(task, statestore.Options{})
	must(t, err)
	must(t, s.Close())
	before, err := os.ReadFile(filepath.Join(task, checkpointName))
	must(t, err)
	all, err := Export(t.Context(), dir, Options{Logger: quiet})
	must(t, err)
	if len(all) != 1 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "migrate first") {
		t.Errorf("%+v", all)
	}
	if after, err := os.ReadFile(filepath.Join(task, checkpointName)); err != nil || string(after) != string(before) {
		t.Errorf("the file is now %q, %v", after, err)
	}
}

func TestExportGlobal(t *testing.T) {
	e := exportEntry(taskID{global: true}, statestore.StoreMetadata{Spec: statestore.Spec{Name: "g", Changelog: "in"}, Offset: statestore.At(5)})
	if *e.Raw != 5 || *e.NextOffset != 5 {
		t.Errorf("%+v: the global file holds the next offset", e)
	}
	e = exportEntry(taskID{}, statestore.StoreMetadata{Spec: statestore.Spec{Name: "g", Changelog: "in"}, Offset: statestore.At(5), Forgotten: true})
	if *e.Raw != offsetfile.Unknown || e.NextOffset != nil {
		t.Errorf("%+v: the data is of an unknown time", e)
	}
}
