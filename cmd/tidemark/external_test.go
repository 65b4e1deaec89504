package main

import (
	"bytes"
	"encoding/json"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/statestore"
)

// ownStore is a program's own store, with offsets.
type ownStore struct {
	rows []statestore.Row
	at   statestore.StorePoint
}

func (s *ownStore) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(s.rows, key, func(r statestore.Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

func (s *ownStore) Get(key []byte) ([]byte, bool, error) {
	i, ok := s.find(key)
	if !ok {
		return nil, false, nil
	}
	return s.rows[i].Value, true, nil
}

func (s *ownStore) Range(_, _ []byte, _ bool) iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		for _, r := range slices.Clone(s.rows) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *ownStore) Apply(writes []statestore.Row, at statestore.StorePoint) error {
	for _, w := range writes {
		i, _ := s.find(w.Key)
		s.rows = slices.Insert(s.rows, i, statestore.Row{Key: bytes.Clone(w.Key), Value: bytes.Clone(w.Value)})
	}
	s.at = at
	return nil
}

func (s *ownStore) Sync() error                           { return nil }
func (s *ownStore) Close() error                          { return nil }
func (s *ownStore) ManagesOffsets() bool                  { return true }
func (s *ownStore) Point() (statestore.StorePoint, error) { return s.at, nil }

// TestInspectOwnStore: its rows are not in the database, and are not told to be none.
func TestInspectOwnStore(t *testing.T) {
	root := t.TempDir()
	app, err := statedir.Open(root, "app")
	must(t, err)
	s, err := statestore.Open(app.TaskDir("0_0"), statestore.Options{Logger: quiet()})
	must(t, err)
	must(t, s.Register(statestore.Spec{Name: "mine", Kind: statestore.KindKeyValue, Changelog: "app-mine-changelog", Store: &ownStore{}},
		statestore.Spec{Name: "plain", Kind: statestore.KindKeyValue, Changelog: "app-plain-changelog"}))
	for _, name := range []string{"mine", "plain"} {
		kv, err := s.KeyValue(name)
		must(t, err)
		must(t, kv.Put([]byte("k"), []byte("v"), 1))
	}
	x, err := s.Seal(statestore.Progress{ID: statestore.CommitID{Epoch: 1, Number: 1}})
	must(t, err)
	must(t, s.Commit(x, map[string]statestore.Offset{"mine": statestore.At(1), "plain": statestore.At(1)}))
	s.Release(x)
	must(t, s.Close())
	must(t, app.Close())

	var found inspection
	must(t, json.Unmarshal([]byte(want(t, exitOK, "{", "", "inspect", root, "--json")), &found))
	stores := found.Apps[0].Tasks[0].Store.Stores
	if mine := stores[0]; !mine.External || mine.Rows != 0 || mine.RowsExact {
		t.Errorf("the program's own store: %+v; want external, without a number of rows", mine)
	}
	if plain := stores[1]; plain.External || plain.Rows != 1 || !plain.RowsExact {
		t.Errorf("the store in the database: %+v; want one row", plain)
	}
	out := want(t, exitOK, "kept by the program itself", "", "inspect", filepath.Join(root, "app"))
	if !slices.ContainsFunc(strings.Split(out, "\n"), func(l string) bool {
		return strings.Contains(l, "mine") && strings.Contains(l, "external")
	}) {
		t.Errorf("no line of the store says external:\n%s", out)
	}
	want(t, exitOK, "0 problems", "", "verify", root)
}
