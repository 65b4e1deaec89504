package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damagedStore makes a task store whose tables are damaged where opening does not look.
func damagedStore(t *testing.T, dir string) {
	t.Helper()
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
	kv := handle(t, s, "counts")
	for i := range 20_000 {
		must(t, kv.Put(fmt.Appendf(nil, "key-%05d", i), fmt.Appendf(nil, "%064x", i*i*7919), 1))
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	damage(t, filepath.Join(dir, "*.sst"))
}

// Damage that is found in use is remembered: the directory is not opened again only to fail
// at the same block again.
func TestDamageIsRemembered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	damagedStore(t, dir)
	s := openStore(t, dir, Options{Logger: quiet()}, countsSpec)
	var found error
	for _, err := range handle(t, s, "counts").All() {
		found = err
	}
	if !errors.Is(found, ErrCorrupt) {
		t.Fatalf("scan: %v; want the damage", found)
	}
	must(t, s.Close())
	_, err := Open(dir, Options{Logger: quiet()})
	_, err2 := OpenReadOnly(dir, ReadOptions{Logger: quiet()})
	for _, err := range []error{err, err2} {
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "found when it was open last") || !strings.Contains(err.Error(), ".sst") {
			t.Errorf("opened again: %v; want what was found", err)
		}
	}
	other, err := OtherFiles(dir)
	if err != nil || len(other) != 0 {
		t.Errorf("other files %q, %v", other, err)
	}
	// Any other failure leaves no mark.
	must(t, os.Remove(filepath.Join(dir, damagedName)))
	must(t, openStore(t, dir, Options{Logger: quiet()}).Close())
	if _, err := os.Stat(filepath.Join(dir, damagedName)); err == nil {
		t.Error("a clean close left a mark")
	}
}
