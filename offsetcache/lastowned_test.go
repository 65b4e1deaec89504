package offsetcache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/statestore"
)

func TestLastOwned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	makeStore(t, dir, 42, 1)
	if _, err := LastOwned(dir, statestore.ReadOptions{}); !errors.Is(err, ErrNeverOwned) {
		t.Errorf("without a stamp: %v", err)
	}
	stamped := time.UnixMilli(1_700_000_000_000)
	s, err := statestore.Open(dir, statestore.Options{})
	must(t, err)
	must(t, errors.Join(s.StampOwner(statestore.Owner{ProcessID: "p", Last: stamped}), s.Close()))
	// The times of files mean nothing.
	now := time.Now()
	must(t, eachFile(dir, "*", func(f string) error { return os.Chtimes(f, now, now) }))
	if got, err := LastOwned(dir, statestore.ReadOptions{}); err != nil || !got.Equal(stamped) {
		t.Errorf("%v, %v; want %v", got, err, stamped)
	}
	must(t, os.WriteFile(filepath.Join(dir, ".checkpoint.migrated"), nil, 0o600))
	if _, err := LastOwned(dir, statestore.ReadOptions{}); err != nil {
		t.Errorf("what was migrated: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "kv.position"), nil, 0o600))
	if _, err := LastOwned(dir, statestore.ReadOptions{}); !errors.Is(err, ErrLegacy) {
		t.Errorf("legacy: %v", err)
	}
	if _, err := LastOwned(t.TempDir(), statestore.ReadOptions{}); !errors.Is(err, statestore.ErrNoStore) {
		t.Errorf("empty: %v", err)
	}
	// Kept for ever, however old.
	must(t, os.Remove(filepath.Join(dir, "kv.position")))
	must(t, os.WriteFile(filepath.Join(dir, "tidemark.keep-migrated"), nil, 0o600))
	if _, err := LastOwned(dir, statestore.ReadOptions{}); !errors.Is(err, ErrKept) || !errors.Is(Removable(dir), ErrKept) {
		t.Errorf("kept: %v, %v", err, Removable(dir))
	}
	must(t, os.Remove(filepath.Join(dir, "tidemark.keep-migrated")))
	if err := Removable(dir); err != nil {
		t.Errorf("as all others: %v", err)
	}
	if err := Removable(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("what cannot be seen may go")
	}
	// A commit is proof that it was owned then.
	s, err = statestore.Open(filepath.Join(dir, "..", "u"), statestore.Options{})
	must(t, err)
	must(t, s.Register(statestore.Spec{Name: "a", Kind: statestore.KindKeyValue, Changelog: "x"}))
	sealed, err := s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: 1}})
	must(t, err)
	must(t, errors.Join(s.Commit(sealed, nil), s.Close()))
	if got, err := LastOwned(filepath.Join(dir, "..", "u"), statestore.ReadOptions{}); err != nil || time.Since(got) > time.Minute {
		t.Errorf("committed now: %v, %v", got, err)
	}
}
