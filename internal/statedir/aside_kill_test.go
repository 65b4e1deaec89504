package statedir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
)

const setAsideEnv = "TIDEMARK_STATEDIR_SET_ASIDE"

// TestSetAsideChild is the process that TestKillWhileSettingAside kills.
func TestSetAsideChild(t *testing.T) {
	base := os.Getenv(setAsideEnv)
	if base == "" {
		t.Skip("only as a child of TestKillWhileSettingAside")
	}
	d := open(t, base)
	if _, err := d.SetAside("0_1", "block 7 is damaged"); err != nil {
		t.Fatal(err)
	}
}

// TestKillWhileSettingAside kills the process behind each step: what was in the directory is there once,
// in its place or set aside, and setting aside can go on.
func TestKillWhileSettingAside(t *testing.T) {
	for _, step := range []struct {
		point   string
		inPlace bool
	}{{"aside-reason", true}, {"aside-renamed", false}, {"set-aside", false}} {
		t.Run(step.point, func(t *testing.T) {
			base := t.TempDir()
			d := open(t, base)
			task := d.TaskDir("0_1")
			must(t, os.MkdirAll(task, 0o700))
			must(t, os.WriteFile(filepath.Join(task, "data"), []byte("content"), 0o600))
			must(t, d.Close())

			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSetAsideChild$")
			cmd.Env = append(os.Environ(), setAsideEnv+"="+base, failpoint.Env+"="+step.point)
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Fatalf("the child was not killed:\n%s", out)
			}
			d = open(t, base)
			if _, err := os.Stat(task); (err == nil) != step.inPlace {
				t.Errorf("the directory in its place: %v; want %t", err, step.inPlace)
			}
			if step.inPlace {
				if _, err := d.SetAside("0_1", "block 7 is damaged"); err != nil {
					t.Fatal(err)
				}
			}
			aside, err := d.AsideDirs()
			if err != nil || len(aside) != 1 || !strings.Contains(aside[0].Reason, "block 7 is damaged") {
				t.Fatalf("set aside: %+v, %v; want one, with the reason", aside, err)
			}
			if b, err := os.ReadFile(filepath.Join(aside[0].Path, "data")); err != nil || string(b) != "content" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestSetAsideWithoutReason: where the reason cannot be written the directory is set aside, and the error says so.
func TestSetAsideWithoutReason(t *testing.T) {
	d := open(t, t.TempDir())
	task := d.TaskDir("0_1")
	must(t, os.MkdirAll(filepath.Join(task, asideFile+".tmp"), 0o700)) // in the place of the file
	path, err := d.SetAside("0_1", "block 7 is damaged")
	if !errors.Is(err, ErrNoReason) || path == "" || !strings.Contains(err.Error(), path) {
		t.Errorf("%q, %v; want the path and ErrNoReason", path, err)
	}
	if _, err := os.Stat(task); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory in its place: %v", err)
	}
	must(t, os.WriteFile(task, nil, 0o600)) // a file has no room for a reason, which is not an error
	if path, err := d.SetAside("0_1", "a file"); err != nil || path == "" {
		t.Errorf("a file in the place of the directory: %q, %v", path, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
