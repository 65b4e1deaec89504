package streams_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/statestore"
)

// damageFiles overwrites the beginning of the files.
func damageFiles(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("files %s: %q, %v", pattern, names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(len(b), 200) {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged directory is set aside, whole, and the task restored; the others do not notice.
func TestDamagedDirectoryIsSetAside(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]string{"found when opening": "MANIFEST-*", "found when reading": "*.sst"} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, e *env) {
				e = newEnv(t, e.b, e.client)
				in, want := lines(200)
				e.produce(in...)
				app := e.start(e.wordCount(), e.config())
				app.catchUp()
				app.close()
				dir := filepath.Join(e.dir, e.app, "1_0")
				damageFiles(t, filepath.Join(dir, files))
				e.produce(in...)
				app = e.start(e.wordCount(), e.config())
				app.catchUp()
				app.close()
				for w := range want {
					want[w] *= 2
				}
				got, _ := e.counts(e.out)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("counts: -want +got\n%s", diff)
				}
				aside, err := filepath.Glob(filepath.Join(e.dir, e.app, "*.corrupt-*"))
				if err != nil || len(aside) != 1 || !strings.HasPrefix(filepath.Base(aside[0]), "1_0.") {
					t.Fatalf("set aside: %q, %v", aside, err)
				}
				if kept, _ := filepath.Glob(filepath.Join(aside[0], files)); len(kept) == 0 {
					t.Errorf("%s holds none of %s", aside[0], files)
				}
				reason, err := os.ReadFile(filepath.Join(aside[0], "set-aside.txt"))
				if err != nil || !strings.Contains(string(reason), statestore.ErrCorrupt.Error()) {
					t.Errorf("reason %q, %v", reason, err)
				}
				store, err := statestore.Open(dir, statestore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(store.Err(), store.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
