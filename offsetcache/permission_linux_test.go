package offsetcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const scanAsNobody = "TIDEMARK_SCAN_AS_NOBODY"

// scanned is what the child process found.
type scanned struct {
	Opened           int
	Failed           string
	PermissionDenied bool
}

// init is how the child begins: it must not run the tests.
func init() {
	base := os.Getenv(scanAsNobody)
	if base == "" {
		return
	}
	if err := scanInChild(base); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// scanInChild is the child of TestScanWithoutPermission, which root has to be to make, and
// must not be to see, a directory that it may not read.
func scanInChild(base string) error {
	dirs := []Directory{{"0_0", filepath.Join(base, "0_0")}, {"0_1", filepath.Join(base, "0_1")}}
	scan, err := New().Scan(context.Background(), dirs, ScanOptions{Logger: quiet})
	if err != nil {
		return err
	}
	out := scanned{Opened: scan.Opened}
	for _, f := range scan.Failed {
		out.Failed += f.Err.Error()
		out.PermissionDenied = errors.Is(f.Err, fs.ErrPermission)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// A directory that this user may not read is named, and the other one is read.
func TestScanWithoutPermission(t *testing.T) {
	const nobody = 65534
	base, err := os.MkdirTemp("/tmp", "scan") //nolint:usetesting // the parent of t.TempDir is closed to others
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o755))
	for _, task := range []string{"0_0", "0_1"} {
		makeStore(t, filepath.Join(base, task), 42, 1)
	}
	must(t, os.Chmod(filepath.Join(base, "0_0"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(base, "0_0"), 0o700) })
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	child.Env = append(os.Environ(), scanAsNobody+"="+base)
	child.Dir = "/"
	if os.Geteuid() == 0 {
		must(t, filepath.WalkDir(filepath.Join(base, "0_1"), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, nobody, nobody))
		}))
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := child.Output()
	if err != nil {
		t.Fatalf("the child: %v", err)
	}
	var got scanned
	must(t, json.Unmarshal(out, &got))
	if got.Opened != 1 || !got.PermissionDenied || !strings.Contains(got.Failed, filepath.Join(base, "0_0")) {
		t.Errorf("%+v", got)
	}
}
