package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

// runOn runs a command that must end by itself.
func runOn(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- run(context.Background(), args, &out, &errs) }()
	select {
	case code = <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%v does not end", args)
	}
	return out.String(), errs.String(), code
}

// Names and texts that are found in a state directory cannot pass for the program's own lines,
// nor reach the terminal as more than text.
func TestNamesThatAreNotPlainText(t *testing.T) {
	const bad = "x\nPROBLEM: \x1b[31m\xff"
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	for _, d := range []string{task, filepath.Join(dir, bad), filepath.Join(dir, "app", bad)} {
		must(t, os.MkdirAll(d, 0o700))
	}
	for _, f := range []string{bad, "MANIFEST-000001", "tidemark.corrupt"} {
		must(t, os.WriteFile(filepath.Join(task, f), []byte(bad), 0o600))
	}
	for _, command := range []string{"inspect", "verify", "snapshot"} {
		args := []string{command, dir}
		if command == "snapshot" {
			args = append(args, filepath.Join(t.TempDir(), "copy"))
		}
		stdout, stderr, _ := runOn(t, args...)
		text := stdout + stderr
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") || strings.Contains(text, "\nPROBLEM") {
			t.Errorf("%s prints %q", command, text)
		}
		if command != "snapshot" {
			stdout, _, _ := runOn(t, append(args, "--json")...)
			if !json.Valid([]byte(stdout)) {
				t.Errorf("%s --json prints %q", command, stdout)
			}
		}
	}
}

// Something that is no file in the place of the mark of damage is not waited for.
func TestMarkOfDamageThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "app", "0_0")
	must(t, os.MkdirAll(task, 0o700))
	must(t, os.WriteFile(filepath.Join(task, "MANIFEST-000001"), nil, 0o600))
	must(t, syscall.Mkfifo(filepath.Join(task, "tidemark.corrupt"), 0o600))
	if stdout, _, code := runOn(t, "inspect", dir); code != exitProblems || !strings.Contains(stdout, statusCorrupt) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// A time that JSON cannot say is left out.
func TestTimeThatJSONDoesNotHave(t *testing.T) {
	dir := t.TempDir()
	s, err := statestore.Open(filepath.Join(dir, "app", "0_0"), statestore.Options{Logger: quiet()})
	must(t, err)
	must(t, s.StampOwner(statestore.Owner{ProcessID: "p", Last: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)}))
	must(t, s.Close())
	stdout, stderr, code := runOn(t, "inspect", dir, "--json")
	if code != exitOK || !json.Valid([]byte(stdout)) {
		t.Errorf("exit code %d, %s: %s", code, stderr, stdout)
	}
}

// Likewise what a legacy directory holds: names of files and stores, and the topics in the files.
func TestLegacyNamesThatAreNotPlainText(t *testing.T) {
	const bad = "x\nPROBLEM: \x1b[31m\xff"
	dir := t.TempDir()
	app := filepath.Join(dir, "app")
	for _, d := range []string{"0_0/rocksdb/" + bad, "1_0/stores/" + bad, bad, "__" + bad + "__/0_0"} {
		must(t, os.MkdirAll(filepath.Join(app, d), 0o700))
	}
	for name, text := range map[string]string{
		"0_0/.checkpoint":                     "0\n2\nto\x1b[2Jpic 0 5\napp-a\x1b[31mb-changelog 0 7\n",
		"0_0/" + bad + ".position":            "\x1b[31m",
		"0_0/.checkpoint_" + bad:              "0\n1\n\x1b[31m 0 1\n",
		"1_0/stores/" + bad + "/" + "CURRENT": "MANIFEST-000001\n",
		"__" + bad + "__/0_0/.checkpoint":     "0\n1\nin\x1b[31m 0 1\n",
	} {
		must(t, os.WriteFile(filepath.Join(app, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"migrate", dir, "--dry-run"}, {"migrate", dir, "--json", "--dry-run"}, {"migrate", dir}, {"export-checkpoint", dir},
		{"clean", dir, "--app", "app"}, {"migrate", filepath.Join(dir, bad)}, {"export-checkpoint", filepath.Join(dir, bad)},
		{"clean", filepath.Join(dir, bad), "--app", "app"},
	} {
		stdout, stderr, _ := runOn(t, args...)
		text := stdout + stderr
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\xff") || strings.Contains(text, "\nPROBLEM") {
			t.Errorf("%q prints %q", args, text)
		}
		if args[len(args)-2] == "--json" && !json.Valid([]byte(stdout)) {
			t.Errorf("%q prints %q", args, stdout)
		}
	}
}
