package streams_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/streams"
)

// CleanUp removes nothing at all while something is there that may exist nowhere else.
func TestCleanUpSparesWhatMayExistNowhereElse(t *testing.T) {
	for name, test := range map[string]struct {
		file, word string
		cause      error
	}{
		"offsets of another program":  {".checkpoint", "0_1", offsetcache.ErrLegacy},
		"data of another program":     {"stores/kv/MANIFEST-000001", "0_1", offsetcache.ErrLegacy},
		"kept by a migration":         {"tidemark.keep-migrated", "0_1", offsetcache.ErrKept},
		"behind a link":               {"", "symbolic link", nil},
		"a position of a store's own": {"kv.position", "0_1", offsetcache.ErrLegacy},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			own, other := filepath.Join(dir, "app", "0_0", "x"), filepath.Join(dir, "app", "0_1")
			err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(own, nil, 0o600))
			if test.file == "" {
				err = errors.Join(err, os.Symlink(t.TempDir(), other))
			} else {
				path := filepath.Join(other, test.file)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			app, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{"127.0.0.1:1"}, StateDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			err = app.CleanUp()
			contains(t, err, "clean up", "nothing is removed", test.word)
			if test.cause != nil && !errors.Is(err, test.cause) {
				t.Errorf("%v; want %v", err, test.cause)
			}
			if _, err := os.Stat(own); err != nil {
				t.Errorf("something was removed: %v", err)
			}
			if err := os.RemoveAll(other); err != nil {
				t.Fatal(err)
			}
			if err := app.CleanUp(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
