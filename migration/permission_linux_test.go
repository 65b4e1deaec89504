package migration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const applyAsNobody = "TIDEMARK_MIGRATE_AS_NOBODY"

// init is how the child begins, which may not read what root may: it must not run the tests.
func init() {
	dir := os.Getenv(applyAsNobody)
	if dir == "" {
		return
	}
	r, err := Apply(context.Background(), dir, Options{CleanShutdown: true, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	for _, note := range r.Notes {
		fmt.Println(note)
	}
	if !r.OK {
		os.Exit(1)
	}
	os.Exit(0)
}

// A folder that may not be listed can hold the data of any store: nothing of the task is touched, and when
// it can be listed all is taken over.
func TestFolderThatMayNotBeListed(t *testing.T) {
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "migrate") //nolint:usetesting // the parent of t.TempDir is closed to others
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	task := legacyTask(t, dir, 0, 50)
	closed := filepath.Join(task, "other")
	if os.Geteuid() == 0 {
		must(t, filepath.WalkDir(filepath.Join(dir, "app"), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, nobody, nobody))
		}))
	}
	apply := func() (string, int) {
		child := exec.CommandContext(t.Context(), "/proc/self/exe")
		child.Env, child.Dir = append(os.Environ(), applyAsNobody+"="+dir), "/"
		if os.Geteuid() == 0 {
			child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		out, err := child.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 1) {
			t.Fatalf("the child: %v\n%s", err, out)
		}
		return string(out), child.ProcessState.ExitCode()
	}
	must(t, os.Chmod(closed, 0))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if out, code := apply(); code != 1 || !strings.Contains(out, closed) {
		t.Errorf("exit %d, and it says: %s", code, out)
	}
	for _, name := range []string{checkpointName, "counts" + positionSuffix, "stores/counts", "stores/names"} {
		if !exists(t, filepath.Join(task, name)) {
			t.Errorf("%s is gone", name)
		}
	}
	must(t, os.Chmod(closed, 0o700))
	if out, code := apply(); code != 0 {
		t.Errorf("when it can be listed: exit %d, %s", code, out)
	}
	if diff := cmp.Diff(wantContent(0, 50), contentOf(t, task)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
