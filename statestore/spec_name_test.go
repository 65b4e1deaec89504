package statestore

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store's name becomes that of a file of a store of the user's own: one that could be another file is refused.
func TestStoreNamesThatCannotBeFiles(t *testing.T) {
	for name, own := range map[string]bool{ // true: only refused for a store of the user's own
		"..": false, ".": false, "../0_1/x": false, "a/b": false, "a\\b": false, "a\x00b": false, "a\nb": false, "": false,
		"a.tmp": true, "a.migrated": true, "a.migrated-2": true, "a.quarantined-20260102T030405": true, strings.Repeat("x", 201): true,
	} {
		o := memOptions(vfs.NewMem())
		s, err := Open("t", o)
		must(t, err)
		spec := Spec{Name: name, Kind: KindKeyValue, Changelog: "c"}
		if err := s.Register(spec); (err == nil) != own || err != nil && name != "" && !strings.Contains(err.Error(), "name") {
			t.Errorf("%q in the database: %v", name, err)
		}
		must(t, s.Close())
		if spec.Store, err = openFileStore(o.FS, "files/own", false); err != nil {
			t.Fatal(err)
		}
		s, err = Open("u", o)
		must(t, err)
		if err := s.Register(spec); err == nil {
			t.Errorf("%q of the user's own is taken", name)
		}
		must(t, s.Close())
	}
	for _, name := range []string{"a.b", "größe", "tmp", "migrated", ".x", "...", strings.Repeat("x", 200), "a b"} {
		o := memOptions(vfs.NewMem())
		file, err := openFileStore(o.FS, "files/own", false)
		must(t, err)
		s, err := Open("t", o)
		must(t, err)
		must(t, s.Register(Spec{Name: name, Kind: KindKeyValue, Changelog: "c", Store: file}))
		must(t, s.Close())
	}
}
