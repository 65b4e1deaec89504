package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
)

// A mistake in --state-dir is told before anything is asked of a broker, or deleted.
func TestStateDirIsChecked(t *testing.T) {
	root := t.TempDir()
	d, err := statedir.Open(root, "mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if dir, err := aboveApp(filepath.Join(root, "mine"), "mine"); err != nil || dir != root {
		t.Errorf("of the application's own directory: %q, %v", dir, err)
	}
	if dir, err := aboveApp(root, "mine"); err != nil || dir != root {
		t.Errorf("of the state directory: %q, %v", dir, err)
	}
	for _, args := range [][]string{
		{"offsets", "show", "--app", "other", "--state-dir", filepath.Join(root, "mine")},
		{"reset", "--app", "other", "--state-dir", filepath.Join(root, "mine")},
		{"reset", "--app", "mine", "--state-dir", filepath.Join(root, "typo")},
	} {
		var out, bad bytes.Buffer
		code := run(t.Context(), append(args, "--brokers", "127.0.0.1:1"), &out, &bad)
		if code != exitFailed || !strings.Contains(bad.String(), "state") || strings.Contains(bad.String(), "127.0.0.1:1") {
			t.Errorf("%q: exit code %d, %s", args, code, bad.String())
		}
	}
}

// A directory that a reset must leave alone is no reason not to look at offsets.
func TestKeptDirectoryAndOffsets(t *testing.T) {
	root := t.TempDir()
	task := filepath.Join(root, "mine", "0_0")
	if err := os.MkdirAll(task, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(task, "tidemark.keep-migrated"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	local, err := openLocal(root, "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.close() }()
	if dirs, err := local.directories(); err != nil || len(dirs) != 1 {
		t.Errorf("directories %q, %v", dirs, err)
	}
	if err := local.removable(); err == nil || !strings.Contains(err.Error(), task) {
		t.Errorf("removable: %v", err)
	}
}
