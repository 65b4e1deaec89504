package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of what is wrong with the arguments the first line tells, not a page of help above or below it.
func TestWrongArguments(t *testing.T) {
	for _, test := range []struct{ args, says string }{
		{"inspect", "STATE_DIR is missing"},
		{"inspect a b", `"b" is one argument too many`},
		{"inspect --jsn a", "flag provided but not defined: -jsn"},
		{"dump a 0_0", "STORE is missing"},
		{"dump a 0_0 counts --limit -1", "--limit -1 is negative"},
		{"dump a 0_0 counts --from hex:zz", `invalid value "hex:zz"`},
		{"snapshot a", "DEST is missing"},
		{"clean a", "--app is missing"},
		{"clean a --app b --older-than -1m", "--older-than -1m0s is negative"},
		{"bench", "open is missing"},
		{"bench close", `"close" cannot be measured`},
		{"bench open --tasks 0", "--tasks 0"},
		{"offsets", "show, accept-reset or use-store is missing"},
		{"offsets look", `"look" is none of`},
		{"offsets show --app a", "missing: --brokers, --state-dir"},
		{"reset", "missing: --app, --brokers"},
		{"reset --app a --brokers b what", `"what" is one argument too many`},
	} {
		code, stdout, stderr := tidemark(strings.Fields(test.args)...)
		first, rest, _ := strings.Cut(stderr, "\n")
		if code != exitFailed || stdout != "" || !strings.Contains(first, test.says) {
			t.Errorf("%s: code %d, %q %q; want %q", test.args, code, stdout, stderr, test.says)
		}
		if strings.Count(rest, "\n") > 2 || !strings.HasPrefix(rest, "usage: tidemark "+strings.Fields(test.args)[0]) {
			t.Errorf("%s: below the error: %q", test.args, rest)
		}
	}
}

// An empty path is a variable that the shell does not have, and not the working directory.
func TestEmptyPath(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("app/0_0", 0o700))
	for _, args := range [][]string{{"inspect", ""}, {"verify", ""}, {"clean", "", "--app", "app"}, {"migrate", ""}, {"snapshot", "", "x"}} {
		want(t, exitFailed, "", "STATE_DIR is empty", args...)
	}
	want(t, exitFailed, "", "DEST is empty", "snapshot", ".", "")
}

// A snapshot inside of what it is of would be a part of it.
func TestSnapshotIntoItself(t *testing.T) {
	root := t.TempDir()
	app := filepath.Join(root, "app")
	must(t, os.MkdirAll(app, 0o700))
	s := openTask(t, filepath.Join(app, "0_0"))
	fill(t, s)
	must(t, s.Close())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(app, link))
	for _, args := range [][2]string{
		{root, root},
		{root, filepath.Join(root, "copy")},
		{app, filepath.Join(app, "0_0", "copy")},
		{app, filepath.Join(link, "copy")},
		{filepath.Join(app, "0_0"), filepath.Join(app, "copy")},
	} {
		want(t, exitFailed, "", "is inside of what is copied", "snapshot", args[0], args[1])
	}
	want(t, exitOK, "0_0", "", "snapshot", app, filepath.Join(root, "app..copy"))
}
