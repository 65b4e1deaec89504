package statedir

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// cleanInChild is killed at a fail point.
func cleanInChild(root string) {
	d, err := Open(root, "app")
	if err != nil {
		die(err)
	}
	if _, err := d.Clean(context.Background(), CleanOptions{OlderThan: time.Hour, LastOwned: lastOwned}); err != nil {
		die(err)
	}
	if err := d.Close(); err != nil {
		die(err)
	}
	os.Exit(0)
}

// Killed at every step, the cleaner leaves a whole task directory or none, and the next one
// finishes its work.
func TestCleanerIsKilled(t *testing.T) {
	for _, point := range []string{"clean-renamed", "clean-renamed:2", "clean-removing", "clean-removing:2", "clean-removing:4", "clean-removing:7"} {
		t.Run(point, func(t *testing.T) {
			root := t.TempDir()
			for _, task := range []string{"0_0", "0_1"} {
				makeTask(t, root, task, "50")
			}
			makeTask(t, root, "0_2", "0")
			cmd := child(t, "clean", root)
			cmd.Env = append(cmd.Env, "TIDEMARK_FAILPOINT="+point)
			if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the child was to be killed: %v", err)
			}
			for _, name := range names(t, filepath.Join(root, "app")) {
				if _, ok := parseTaskID(name); ok {
					if got := names(t, filepath.Join(root, "app", name)); len(got) != 4 {
						t.Errorf("half of task %s is left: %q", name, got)
					}
				}
			}
			d := open(t, root)
			if _, err := d.Clean(t.Context(), CleanOptions{OlderThan: time.Hour, LastOwned: lastOwned}); err != nil {
				t.Fatal(err)
			}
			if left, want := names(t, d.Path()), []string{"0_2", processIDFile, lockFile, transactionalIDsFile}; !reflect.DeepEqual(left, want) {
				t.Errorf("left %q", left)
			}
		})
	}
}
