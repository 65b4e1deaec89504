package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/filelock"
)

func open(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Open(root, "app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func reopen(t *testing.T, d *Dir) *Dir {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, filepath.Dir(d.Path()))
}

// wantError fails unless err is there and names all of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestCreatesPrivateDirectories(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, root)
	for _, path := range []string{filepath.Dir(root), root, d.Path()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, want 0700", path, info.Mode())
		}
	}
	for _, name := range []string{lockFile, processIDFile, transactionalIDsFile} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}

func TestProcessIDStays(t *testing.T) {
	d := open(t, t.TempDir())
	id := d.ProcessID()
	if !uuidForm.MatchString(id) || id[14] != '4' {
		t.Errorf("process id %q is not a random UUID", id)
	}
	if again := reopen(t, d).ProcessID(); again != id {
		t.Errorf("process id after reopen %q, want %q", again, id)
	}
	if other := open(t, t.TempDir()).ProcessID(); other == id {
		t.Errorf("another directory has the same process id %q", id)
	}
}

func TestProcessIDAfterCrashBeforeRename(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(root, "app", processIDFile+".tmp")
	if err := os.WriteFile(temp, []byte("a much longer rest of a write that a crash interrupted, and then some more"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, root)
	if again := reopen(t, d).ProcessID(); again != d.ProcessID() {
		t.Errorf("process id after reopen %q, want %q", again, d.ProcessID())
	}
	if _, err := os.Stat(temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", temp, err)
	}
}

func TestDamagedProcessIDIsRefused(t *testing.T) {
	for _, text := range []string{"", "\n", "hello\n", "3F2504E0-4F89-41D3-9A0C-0305E82C3301\n", strings.Repeat("\x00", 37)} {
		d := open(t, t.TempDir())
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(d.Path(), processIDFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(filepath.Dir(d.Path()), "app")
		wantError(t, err, path, "delete the file")
		// The failed Open must have given the lock back.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		open(t, filepath.Dir(d.Path()))
	}
}

func TestTransactionalIDsStay(t *testing.T) {
	d := open(t, t.TempDir())
	want := []string{"app-x-0", "app-x-1", "app-x-10"}
	for _, id := range append(want, want[1], want[0]) {
		if err := d.RecordTransactionalID(id); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.TransactionalIDs(); !reflect.DeepEqual(got, want) {
		t.Errorf("ids %q, want %q", got, want)
	}
	d.TransactionalIDs()[0] = "the caller's own"
	d = reopen(t, d)
	if got := d.TransactionalIDs(); !reflect.DeepEqual(got, want) {
		t.Errorf("ids after reopen %q, want %q", got, want)
	}
	for _, bad := range []string{"", "a\nb", "a\x00"} {
		wantError(t, d.RecordTransactionalID(bad), "transactional id")
	}
	if got := reopen(t, d).TransactionalIDs(); !reflect.DeepEqual(got, want) {
		t.Errorf("ids after refused ones %q, want %q", got, want)
	}
}

// Every length at which a crash can cut the file is read, and added to, as if the cut
// line had never been begun.
func TestTornListAtEveryByte(t *testing.T) {
	full := "app-x-0\napp-x-1\napp-x-2\n"
	for n := range len(full) + 1 {
		for _, zeros := range []int{0, 4096} { // some file systems leave zeros where data was not written
			t.Run(fmt.Sprint(n, "+", zeros), func(t *testing.T) {
				d := open(t, t.TempDir())
				path := filepath.Join(d.Path(), transactionalIDsFile)
				if err := os.WriteFile(path, []byte(full[:n]+strings.Repeat("\x00", zeros)), 0o600); err != nil {
					t.Fatal(err)
				}
				d = reopen(t, d)
				want := []string{"app-x-0", "app-x-1", "app-x-2"}[:strings.Count(full[:n], "\n")]
				if got := d.TransactionalIDs(); len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("ids %q, want %q", got, want)
				}
				if err := d.RecordTransactionalID("new"); err != nil {
					t.Fatal(err)
				}
				want = append(want, "new")
				if got := reopen(t, d).TransactionalIDs(); !reflect.DeepEqual(got, want) {
					t.Errorf("ids after adding one %q, want %q", got, want)
				}
			})
		}
	}
}

func TestDamageInsideTheListIsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.Path(), transactionalIDsFile)
	if err := os.WriteFile(path, []byte("a\n\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(filepath.Dir(d.Path()), "app")
	wantError(t, err, path, "take the line out")
}

func TestTaskDirs(t *testing.T) {
	d := open(t, t.TempDir())
	for _, name := range []string{"10_0", "2_11", "2_3", "0_0", "01_0", "+1_0", "1_0_0", "1_", "_1", "x_1", "0_0.trash", "99999999999_0"} {
		if err := os.Mkdir(d.TaskDir(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(d.TaskDir("5_5"), nil, 0o600); err != nil { // a file is no task directory
		t.Fatal(err)
	}
	got, err := d.TaskDirs()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0_0", "2_3", "2_11", "10_0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("task dirs %q, want %q", got, want)
	}
	if want := filepath.Join(d.Path(), "2_3"); d.TaskDir("2_3") != want || !filepath.IsAbs(want) {
		t.Errorf("TaskDir = %q, want %q", d.TaskDir("2_3"), want)
	}
}

func TestSecondOpenInThisProcess(t *testing.T) {
	d := open(t, t.TempDir())
	_, err := Open(filepath.Dir(d.Path()), "app")
	wantError(t, err, "already in use", fmt.Sprintf("process %d", os.Getpid()), d.Path())
	var held *filelock.HeldError
	if !errors.As(err, &held) {
		t.Errorf("%v is no HeldError", err)
	}
	other, err := Open(filepath.Dir(d.Path()), "another")
	if err != nil {
		t.Fatalf("another app id beside it: %v", err)
	}
	other.Close()
}

func TestClose(t *testing.T) {
	d := open(t, t.TempDir())
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, d.RecordTransactionalID("x"), "closed")
}

func TestBadPaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "app"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		root  string
		words []string
	}{
		"empty":                {"", []string{"path is empty"}},
		"file as state dir":    {file, []string{"not a directory", "a file is in its place", file}},
		"file as app dir":      {root, []string{"not a directory", "a file is in its place", root}},
		"file above state dir": {filepath.Join(file, "x"), []string{"not a directory", "a file is in its place", file}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Open(test.root, "app")
			wantError(t, err, append(test.words, "open state directory")...)
		})
	}
}

func TestValidateAppID(t *testing.T) {
	for _, id := range []string{"a", "word-count", "A.b_c-9", "...", strings.Repeat("x", 249), "0_a", "a_0", "0_0_0", "globals", "0-0", "process-ids", "__", "____", "__a", "trash-1"} {
		if err := ValidateAppID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, words := range map[string]string{
		"": "empty", ".": `"."`, "..": `".."`, "a/b": "'/'", "a b": "' '", "größe": "'ö'", "a\x00": `'\x00'`,
		"a:b": "':'", "\xff": "'\uFFFD'", strings.Repeat("x", 250): "250 bytes",
		"0_0": "a task's directory", "00_1": "a task's directory", "12_345": "a task's directory", "0_1.corrupt-x": "a task's directory",
		"0_1.kept-20260102T150405Z": "a task's directory", "global": "the global stores", "__a__": "a named topology", ".trash-1-0_0": "being removed",
		"tidemark.lock": "a file", "process-id": "a file", "process-id.tmp": "a file", "transactional-ids": "a file", "offsets-choice": "a file", "begins-anew": "a file",
		".lock": "a file", "kafka-streams-process-metadata": "a file",
	} {
		err := ValidateAppID(id)
		wantError(t, err, words)
		if _, openErr := Open(t.TempDir(), id); openErr == nil || !strings.Contains(openErr.Error(), err.Error()) {
			t.Errorf("Open with app id %q: %v", id, openErr)
		}
	}
}
