package statestore

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// legacyCheckpoint is what lies at .checkpoint_wrapped, and what is to become of it.
type legacyCheckpoint struct {
	content     string
	offset      Offset
	quarantined bool
}

var legacyCheckpoints = map[string]legacyCheckpoint{
	"as written":            {"0\n1\napp-wrapped-changelog 3 41\n", At(42), false},
	"clean, unknown":        {"0\n1\napp-wrapped-changelog 3 -4\n", CleanUnknown(), false},
	"another entry":         {"0\n2\nsomething-else 3 7\napp-wrapped-changelog 3 41\n", At(42), false},
	"only of another":       {"0\n1\napp-wrapped-changelog 2 41\n", Offset{}, false},
	"no entries":            {"0\n0\n", Offset{}, false},
	"own entry skipped":     {"0\n1\napp-wrapped-changelog 3 -1\n", Offset{}, false},
	"another's skipped":     {"0\n2\napp-wrapped-changelog 3 41\nsomething-else 0 -1\n", At(42), false},
	"line ends of Windows":  {"0\r\n1\r\napp-wrapped-changelog 3 41\r\n", At(42), false},
	"tabs, no last newline": {"0\n1\napp-wrapped-changelog\t3\t 41 ", At(42), false},
	"no offset can follow":  {"0\n1\napp-wrapped-changelog 3 9223372036854775807\n", Offset{}, false},
	"empty":                 {"", Offset{}, true},
	"zeros":                 {"\x00\x00\x00\x00", Offset{}, true},
	"another version":       {"1\n1\napp-wrapped-changelog 3 41\n", Offset{}, true},
	"mark before version":   {"\ufeff0\n1\napp-wrapped-changelog 3 41\n", Offset{}, true},
	"cut off":               {"0\n2\napp-wrapped-changelog 3 41\n", Offset{}, true},
	"blank line":            {"0\n1\napp-wrapped-changelog 3 41\n\n", Offset{}, true},
	"twice":                 {"0\n2\napp-wrapped-changelog 3 41\napp-wrapped-changelog 3 40\n", Offset{}, true},
	"four fields":           {"0\n1\napp wrapped 3 41\n", Offset{}, true},
	"not a number":          {"0\n1\napp-wrapped-changelog 3 4_1\n", Offset{}, true},
	"too large":             {"0\n1\napp-wrapped-changelog 3 9223372036854775808\n", Offset{}, true},
	"negative partition":    {"0\n1\napp-wrapped-changelog -3 41\n", Offset{}, true},
	"not UTF-8":             {"0\n1\napp-wrapped-changelog\xff 3 41\n", Offset{}, true},
}

// openLegacy opens the store of a task directory in which another program has left the file.
func openLegacy(t *testing.T, fs vfs.FS, dir string) (*TaskStore, StoreState) {
	t.Helper()
	o := memOptions(fs)
	o.Logger = slog.New(slog.DiscardHandler)
	file, err := openFileStore(fs, fs.PathJoin(dir, "files", "own"), false)
	must(t, err)
	spec := wrappedSpec
	spec.Store, spec.ChangelogPartition = file, 3
	s := openStore(t, dir, o, spec)
	st, err := s.Stores()
	must(t, err)
	return s, st[0]
}

// What another program has left is never deleted: what it says is taken as far as it can be trusted, and
// the file itself is quarantined, or kept as *.migrated when its place is taken.
func TestLegacyCheckpointOfAnOwnStore(t *testing.T) {
	for name, c := range legacyCheckpoints {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "app", "0_0")
			must(t, os.MkdirAll(dir, 0o700))
			path := filepath.Join(dir, ".checkpoint_wrapped")
			must(t, os.WriteFile(path, []byte(c.content), 0o600))
			for range 2 { // the second time as after a crash
				s, st := openLegacy(t, vfs.Default, dir)
				if st.Offset != c.offset || st.Complete {
					t.Errorf("%+v; want it at %v", st, c.offset)
				}
				must(t, s.Close())
				checkOriginal(t, path, c.content, map[bool]string{true: ".quarantined-*"}[c.quarantined])
			}
			s, _ := openLegacy(t, vfs.Default, dir)
			if c.offset.IsAbsent() {
				must(t, s.Clear("wrapped"))
			}
			must(t, s.Restore("wrapped", []RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}, 100))
			must(t, s.Close())
			checkOriginal(t, path, c.content, map[bool]string{true: ".quarantined-*", false: ".migrated"}[c.quarantined])
			s, st := openLegacy(t, vfs.Default, dir)
			if st.Offset != At(100) {
				t.Errorf("later: %+v", st)
			}
			must(t, s.Restore("wrapped", []RestoreRecord{{Key: []byte("l"), Value: []byte("v")}}, 101))
			must(t, s.Close())
			if copies, err := filepath.Glob(path + ".*"); err != nil || len(copies) != 1 {
				t.Errorf("copies: %q, %v", copies, err)
			}
		})
	}
}

func checkOriginal(t *testing.T, path, content, suffix string) {
	t.Helper()
	found, err := filepath.Glob(path + suffix)
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s%s: %q", path, suffix, found)
	}
	if got, err := os.ReadFile(found[0]); err != nil || string(got) != content {
		t.Fatalf("%s holds %q, %v; want the original", found[0], got, err)
	}
}

// What is no file, or no file that can be read, is renamed too, and the store opens.
func TestOddCheckpointOfAnOwnStore(t *testing.T) {
	for name, put := range oddFiles {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "app", "0_0")
			must(t, os.MkdirAll(dir, 0o700))
			path := filepath.Join(dir, ".checkpoint_wrapped")
			must(t, put(path))
			s, st := openLegacy(t, vfs.Default, dir)
			if !st.Offset.IsAbsent() {
				t.Errorf("%+v", st)
			}
			must(t, s.Restore("wrapped", nil, 100))
			must(t, s.Close())
			if kept, err := filepath.Glob(path + ".quarantined-*"); err != nil || len(kept) != 1 {
				t.Errorf("quarantined: %q, %v", kept, err)
			}
			if s, st = openLegacy(t, vfs.Default, dir); st.Offset != At(100) {
				t.Errorf("later: %+v", st)
			}
			must(t, s.Close())
		})
	}
}

var oddFiles = map[string]func(path string) error{
	"a directory":       func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	"a link to itself":  func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"a link to nothing": func(path string) error { return os.Symlink("nothing", path) },
	"no permission": func(path string) error {
		return errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, 0)) // root reads it, and it means nothing
	},
}

// A link to a file is followed; a write takes the link's place, and what it led to stays.
func TestLinkedCheckpointOfAnOwnStore(t *testing.T) {
	root := t.TempDir()
	dir, target := filepath.Join(root, "app", "0_0"), filepath.Join(root, "target")
	must(t, os.MkdirAll(dir, 0o700))
	const content = "0\n1\napp-wrapped-changelog 3 41\n"
	must(t, os.WriteFile(target, []byte(content), 0o600))
	must(t, os.Symlink(target, filepath.Join(dir, ".checkpoint_wrapped")))
	s, st := openLegacy(t, vfs.Default, dir)
	if st.Offset != At(42) {
		t.Errorf("%+v", st)
	}
	must(t, s.Restore("wrapped", nil, 100))
	must(t, s.Close())
	checkOriginal(t, target, content, "")
	checkOriginal(t, filepath.Join(dir, ".checkpoint_wrapped"), content, ".migrated")
}

// A power loss at any step leaves the original in its place or its copy.
func TestLegacyCheckpointSurvivesPowerLoss(t *testing.T) {
	random := testseed.New(t)
	for name, c := range legacyCheckpoints {
		for _, percent := range []int{0, 50, 100} {
			fs := newCrashFS()
			s, _ := openLegacy(t, fs, "t")
			must(t, s.Sync())
			must(t, s.Close())
			f, err := fs.Create("t/.checkpoint_wrapped", vfs.WriteCategoryUnspecified)
			must(t, err)
			_, err = f.Write([]byte(c.content))
			must(t, errors.Join(err, f.Sync(), f.Close(), syncDir(fs, "t")))
			s, _ = openLegacy(t, fs, "t")
			must(t, s.Clear("wrapped"))
			must(t, s.Restore("wrapped", nil, 100))
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random})
			must(t, s.Close())
			names, err := clone.List("t")
			must(t, err)
			if !slices.ContainsFunc(names, func(n string) bool {
				if !strings.HasPrefix(n, ".checkpoint_wrapped") {
					return false
				}
				got, err := readWhole(clone, "t/"+n)
				return err == nil && string(got) == c.content
			}) {
				t.Errorf("%s: the original is lost: %q", name, names)
			}
		}
	}
}

// Resources that will be there again are no reason to give an offset up.
func TestCheckpointWithoutAFileDescriptor(t *testing.T) {
	fs := vfs.NewMem()
	s, _ := openLegacy(t, fs, "t")
	must(t, s.Restore("wrapped", nil, 100))
	must(t, s.Close())
	failing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".checkpoint_wrapped") {
			return syscall.EMFILE
		}
		return nil
	}))
	file, err := openFileStore(fs, "t/files/own", false)
	must(t, err)
	spec := wrappedSpec
	spec.Store, spec.ChangelogPartition = file, 3
	s, err = Open("t", memOptions(failing))
	must(t, err)
	if err := s.Register(spec); err == nil || !strings.Contains(err.Error(), ".checkpoint_wrapped") {
		t.Errorf("%v; want an error that names the file", err)
	}
	must(t, s.Close())
	if s, st := openLegacy(t, fs, "t"); st.Offset != At(100) {
		t.Errorf("later: %+v", st)
	} else {
		must(t, s.Close())
	}
}
