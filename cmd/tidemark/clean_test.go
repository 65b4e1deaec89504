package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// ownedTask makes a task directory whose task was owned for the last time so long ago.
func ownedTask(t *testing.T, stateDir, task string, ago time.Duration) string {
	t.Helper()
	dir := filepath.Join(stateDir, "app", task)
	s, err := statestore.Open(dir, statestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Register(statestore.Spec{Name: "kv", Kind: statestore.KindKeyValue, Changelog: "app-kv-changelog"})
	err = errors.Join(err, s.Restore("kv", nil, 42))
	if ago > 0 {
		err = errors.Join(err, s.StampOwner(statestore.Owner{ProcessID: "p", Last: time.Now().Add(-ago)}))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestClean(t *testing.T) {
	dir := t.TempDir()
	young, old, unknown := ownedTask(t, dir, "0_0", time.Hour), ownedTask(t, dir, "0_1", 100*time.Hour), ownedTask(t, dir, "0_2", 0)
	there := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	// The application's own directory will do too; a task's would clean more than it says.
	code, stdout, stderr := tidemark("clean", filepath.Join(dir, "app"), "--app", "app", "--older-than", "48h", "--dry-run")
	if code != exitProblems || !strings.Contains(stdout, "would be removed") || there(filepath.Join(dir, "app", "app")) {
		t.Errorf("the application's directory: code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := tidemark("clean", old, "--app", "app", "--dry-run"); code != exitFailed || !strings.Contains(stderr, "one task's directory") || there(filepath.Join(old, "app")) {
		t.Errorf("a task's directory: code %d, %s", code, stderr)
	}
	code, stdout, stderr = tidemark("clean", dir, "--app", "app", "--older-than", "48h", "--dry-run")
	if code != exitProblems || !there(old) || !strings.Contains(stdout, "would be removed") {
		t.Errorf("dry run: code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = tidemark("clean", dir, "--app", "app", "--older-than", "48h", "--json")
	var got struct {
		Tasks []cleanedJSON `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err, stdout, stderr)
	}
	if code != exitProblems || !there(young) || there(old) || !there(unknown) || len(got.Tasks) != 3 {
		t.Errorf("code %d, %s", code, stdout)
	}
	if x := got.Tasks; x[0].Remove || !x[1].Remove || x[2].Remove || x[0].LastOwned == nil || x[2].LastOwned != nil || !strings.Contains(x[2].Reason, "no record") {
		t.Errorf("%+v", x)
	}
	for _, args := range [][]string{{}, {dir}, {dir, "--app", "other"}, {filepath.Join(dir, "nowhere"), "--app", "app"}, {dir, "--app", "app", "--older-than", "-1s"}} {
		if code, _, stderr := tidemark(append([]string{"clean"}, args...)...); code != exitFailed || stderr == "" {
			t.Errorf("%q: code %d", args, code)
		}
	}
	if there(filepath.Join(dir, "other")) {
		t.Error("an application directory was made")
	}
}

// What a migration was told to keep is kept, however long nobody had the task.
func TestCleanLeavesWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	for _, task := range []string{"0_0", "0_1"} {
		if err := os.WriteFile(filepath.Join(ownedTask(t, dir, task, 100*time.Hour), ".checkpoint"), []byte("0\n1\napp-kv-changelog "+task[2:]+" 5\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := tidemark("migrate", dir, "--keep"); code != exitOK {
		t.Fatal(code, stdout, stderr)
	}
	code, stdout, stderr := tidemark("clean", dir, "--app", "app", "--older-than", "1s")
	if code != exitProblems || strings.Count(stdout, "told to keep") != 2 {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	for _, task := range []string{"0_0", "0_1"} {
		if _, err := os.Stat(filepath.Join(dir, "app", task, ".checkpoint.migrated")); err != nil {
			t.Error(err)
		}
	}
}

func TestExportCheckpoint(t *testing.T) {
	dir := t.TempDir()
	task := ownedTask(t, dir, "0_3", time.Hour)
	code, stdout, stderr := tidemark("export-checkpoint", dir)
	if code != exitOK || !strings.Contains(stdout, "app-kv-changelog-3") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(task, ".checkpoint")); err != nil || string(got) != "0\n1\napp-kv-changelog 3 41\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "app", "0_4"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := tidemark("export-checkpoint", dir, "--json"); code != exitProblems || !strings.Contains(stdout, `"raw": 41`) {
		t.Errorf("code %d, %s", code, stdout)
	}
	if code, _, _ := tidemark("export-checkpoint"); code != exitFailed {
		t.Errorf("code %d", code)
	}
}
