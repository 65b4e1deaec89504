package localstate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/migration"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDir(t *testing.T, stateDir, app string) *statedir.Dir {
	t.Helper()
	d, err := statedir.Open(stateDir, app)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func writeCheckpoint(t *testing.T, dir, content string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, ".checkpoint"), []byte(content), 0o600))
}

const checkpoint = "0\n1\napp-counts-changelog 0 41\n"

// adopt is what an App does at start.
func adopt(t *testing.T, d *statedir.Dir, app string) {
	t.Helper()
	must(t, Adopt(t.Context(), d, quiet, func() (migration.Options, error) {
		return migration.Options{App: app, Guarantee: migration.AtLeastOnce}, nil
	}))
}

func wantMigrated(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, ".checkpoint.migrated")); err != nil {
		t.Errorf("not migrated: %v", err)
	}
}

// A directory that is called like the application, in the application's own, is not taken for it.
func TestAdoptWithADirectoryOfTheApplicationsName(t *testing.T) {
	for name, make := range map[string]func(stray string) error{
		"empty":          func(stray string) error { return os.Mkdir(stray, 0o700) },
		"a file":         func(stray string) error { return os.WriteFile(stray, nil, 0o600) },
		"a copy of some": func(stray string) error { return os.MkdirAll(filepath.Join(stray, "0_1"), 0o700) },
		"a link":         func(stray string) error { return os.Symlink(".", stray) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			d := openDir(t, state, "app")
			writeCheckpoint(t, d.TaskDir("0_0"), checkpoint)
			must(t, make(filepath.Join(d.Path(), "app")))
			adopt(t, d, "app")
			wantMigrated(t, d.TaskDir("0_0"))
		})
	}
}

// A task's directory behind a symbolic link is read like others, and so is what another program left in it.
func TestAdoptBehindALink(t *testing.T) {
	d := openDir(t, t.TempDir(), "app")
	elsewhere := filepath.Join(t.TempDir(), "disk2")
	writeCheckpoint(t, elsewhere, checkpoint)
	must(t, os.Symlink(elsewhere, d.TaskDir("0_0")))
	must(t, errors.Join(os.Symlink("nowhere", d.TaskDir("0_1")), os.Symlink(elsewhere, filepath.Join(d.Path(), "other"))))
	adopt(t, d, "app")
	wantMigrated(t, elsewhere)
	if info, err := os.Lstat(d.TaskDir("0_0")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
}

// A malformed file of a user's own store makes the migration run, which quarantines it.
func TestAdoptAMalformedFileOfAnOwnStore(t *testing.T) {
	d := openDir(t, t.TempDir(), "app")
	must(t, os.MkdirAll(d.TaskDir("0_0"), 0o700))
	path := filepath.Join(d.TaskDir("0_0"), ".checkpoint_own")
	for n, content := range []string{"0\n1\napp-own-changelog 0 41\n", "0\n2\napp-own-changelog 0 41\n"} {
		must(t, os.WriteFile(path, []byte(content), 0o600))
		asked := false
		must(t, Adopt(t.Context(), d, quiet, func() (migration.Options, error) {
			asked = true
			return migration.Options{App: "app"}, nil
		}))
		kept, err := filepath.Glob(path + "*")
		must(t, err)
		if bad := n == 1; asked != bad || len(kept) != 1 || (kept[0] != path) != bad {
			t.Errorf("%q: asked %v, %s", content, asked, fmt.Sprint(kept))
		}
	}
}
