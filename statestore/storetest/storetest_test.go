package storetest

import (
	"bytes"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPebble(t *testing.T) { Run(t, func(*testing.T) Env { return Env{} }) }

func TestPebbleWithoutCache(t *testing.T) {
	Run(t, func(*testing.T) Env { return Env{Options: statestore.Options{CacheBytes: -1}} })
}

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) Env { return Env{Options: statestore.Options{Engine: statestore.Memory}} })
}

func TestInMemory(t *testing.T) { Run(t, func(*testing.T) Env { return Env{InMemory: true} }) }

func TestOwnStore(t *testing.T) {
	for name, manages := range map[string]bool{"managing offsets": true, "wrapped": false} {
		t.Run(name, func(t *testing.T) {
			RunStateStore(t, func(*testing.T) Opener { return newShelf(manages).open })
			Run(t, func(*testing.T) Env { return Env{Store: newShelf(manages).open} })
		})
	}
}

// shelf keeps stores over restarts, as a disk would.
type shelf struct {
	manages bool
	stores  map[string]*sortedStore
}

func newShelf(manages bool) *shelf { return &shelf{manages, map[string]*sortedStore{}} }

func (h *shelf) open(name string) (statestore.StateStore, error) {
	if h.stores[name] == nil {
		h.stores[name] = &sortedStore{manages: h.manages}
	}
	return h.stores[name], nil
}

// sortedStore is the smallest store of a user's that there can be: rows in a slice.
type sortedStore struct {
	manages bool
	mu      sync.Mutex
	rows    []statestore.Row // replaced and never changed
	at      statestore.StorePoint
}

func (s *sortedStore) now() []statestore.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

func find(rows []statestore.Row, key []byte) (int, bool) {
	return slices.BinarySearchFunc(rows, key, func(r statestore.Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

func (s *sortedStore) Get(key []byte) ([]byte, bool, error) {
	rows := s.now()
	if i, ok := find(rows, key); ok {
		return rows[i].Value, true, nil
	}
	return nil, false, nil
}

func (s *sortedStore) Range(from, to []byte, reverse bool) iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		rows := s.now()
		i, _ := find(rows, from)
		j := len(rows)
		if to != nil {
			j, _ = find(rows, to)
		}
		rows = slices.Clone(rows[i:max(i, j)])
		if reverse {
			slices.Reverse(rows)
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *sortedStore) Apply(writes []statestore.Row, at statestore.StorePoint) error {
	rows := slices.Clone(s.now())
	for _, w := range writes {
		i, ok := find(rows, w.Key)
		if ok {
			rows = slices.Delete(rows, i, i+1)
		}
		if w.Value != nil {
			rows = slices.Insert(rows, i, statestore.Row{Key: bytes.Clone(w.Key), Value: bytes.Clone(w.Value)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.at = rows, at
	return nil
}

func (s *sortedStore) Sync() error                           { return nil }
func (s *sortedStore) Close() error                          { return nil }
func (s *sortedStore) ManagesOffsets() bool                  { return s.manages }
func (s *sortedStore) Point() (statestore.StorePoint, error) { return s.at, nil }
