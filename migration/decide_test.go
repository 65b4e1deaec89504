package migration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be read is said plainly of every store, whatever else is to be said, with the number of records that the
// restore will be about where an offset tells.
func TestReasonsSayWhatIsToCome(t *testing.T) {
	const suspect, unreadable = "nothing proves a clean shutdown", "RocksDB data cannot be read"
	for name, test := range map[string]struct {
		checkpoint string
		o          Options
		want       []string
	}{
		"exactly-once, the default": {"0\n1\napp-kv-changelog 0 41\n", Options{}, []string{suspect, unreadable, "restore from changelog app-kv-changelog, about 42 records"}},
		"clean shutdown":            {"0\n1\napp-kv-changelog 0 41\n", Options{CleanShutdown: true}, []string{unreadable, "restore from changelog app-kv-changelog, about 42 records"}},
		"at-least-once":             {"0\n1\napp-kv-changelog 0 41\n", Options{Guarantee: AtLeastOnce}, []string{unreadable, "about 42 records"}},
		"unknown":                   {"0\n1\napp-kv-changelog 0 -4\n", Options{}, []string{"unknown offset", unreadable, "restore from changelog app-kv-changelog into an empty store"}},
		"the last one":              {"0\n1\napp-kv-changelog 0 9223372036854775807\n", Options{}, []string{"no offset can follow", unreadable, "restore from changelog"}},
		"malformed":                 {"0\n", Options{}, []string{"no offset", unreadable, "restore from changelog app-kv-changelog"}},
		"none":                      {"", Options{}, []string{"no offset", unreadable, "restore from changelog app-kv-changelog"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := taskWith(t, checkpointName, []byte(test.checkpoint))
			task := filepath.Join(dir, "app", "0_0")
			if name == "none" {
				must(t, os.Remove(filepath.Join(task, checkpointName)))
			}
			must(t, os.MkdirAll(filepath.Join(task, "rocksdb", "kv"), 0o700))
			must(t, os.WriteFile(filepath.Join(task, "rocksdb", "kv", "CURRENT"), []byte("MANIFEST-000001\n"), 0o600))
			r, err := Plan(t.Context(), dir, test.o)
			must(t, err)
			e := entryOf(t, r, "0_0", "app-kv-changelog", 0)
			for _, words := range test.want {
				if e.Action != ActionRestore || !strings.Contains(e.Reason, words) {
					t.Errorf("%s, %q; want %q in it", e.Action, e.Reason, words)
				}
			}
		})
	}
	dir := t.TempDir()
	legacyTask(t, dir, 0, 5)
	r, err := Plan(t.Context(), dir, Options{})
	must(t, err)
	if e := entryOf(t, r, "0_0", "app-counts-changelog", 0); !strings.Contains(e.Reason, suspect) || !strings.Contains(e.Reason, "about 100 records") || strings.Contains(e.Reason, "cannot be read") {
		t.Errorf("data that could be read: %q", e.Reason)
	}
}
