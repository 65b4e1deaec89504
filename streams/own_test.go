package streams_test

import (
	"errors"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// warehouse is where a program keeps the rows of its stores itself: in this one a map that lives
// as long as the test, so that a store finds its rows again.
type warehouse struct {
	manages bool
	mu      sync.Mutex
	rooms   map[processor.StorePlace]*room
	open    int
}

func (w *warehouse) store(place processor.StorePlace) (statestore.StateStore, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rooms == nil {
		w.rooms = map[processor.StorePlace]*room{}
	}
	r := w.rooms[place]
	if r == nil {
		r = &room{warehouse: w, rows: map[string][]byte{}}
		w.rooms[place] = r
	}
	w.open++
	return r, nil
}

// burn loses everything.
func (w *warehouse) burn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rooms = nil
}

func (w *warehouse) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// room is one store in it.
type room struct {
	warehouse *warehouse
	mu        sync.Mutex
	rows      map[string][]byte
	at        statestore.StorePoint
}

func (r *room) Get(key []byte) ([]byte, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.rows[string(key)]
	return v, ok, nil
}

func (r *room) Range(from, to []byte, reverse bool) iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		r.mu.Lock()
		rows := maps.Clone(r.rows)
		r.mu.Unlock()
		keys := slices.Sorted(maps.Keys(rows))
		if reverse {
			slices.Reverse(keys)
		}
		for _, k := range keys {
			if k < string(from) || to != nil && k >= string(to) {
				continue
			}
			if !yield(statestore.Row{Key: []byte(k), Value: rows[k]}, nil) {
				return
			}
		}
	}
}

func (r *room) Apply(writes []statestore.Row, at statestore.StorePoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range writes {
		if w.Value == nil {
			delete(r.rows, string(w.Key))
		} else {
			r.rows[string(w.Key)] = append([]byte{}, w.Value...)
		}
	}
	r.at = at
	return nil
}

func (r *room) Close() error {
	r.warehouse.mu.Lock()
	defer r.warehouse.mu.Unlock()
	r.warehouse.open--
	return nil
}

func (r *room) Sync() error                           { return nil }
func (r *room) ManagesOffsets() bool                  { return r.warehouse.manages }
func (r *room) Point() (statestore.StorePoint, error) { return r.at, nil }

func (s shelf) keptIn(w *warehouse) shelf {
	return shelf{s.plain.KeptIn(w.store), s.windows.KeptIn(w.store), s.stamped.KeptIn(w.store), s.duplicates.KeptIn(w.store), s.sessions.KeptIn(w.store), s.versions.KeptIn(w.store)}
}

// Stores of the program's own hold the same as those in the task's database, whether they keep
// offsets or not: after a restart, after a loss, and for every kind.
func TestOwnStores(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for name, manages := range map[string]bool{"with offsets": true, "without offsets": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s, w := newEnv(t, b, clients[0]), newStory(t), &warehouse{manages: manages}
			own := newShelf("own-").keptIn(w)
			cfg := e.config()
			cfg.InstanceID = "one"
			start := func() *running { return e.start(e.onShelves(newShelf(""), own), cfg) }
			e.produceRecords(s.records(e.in, 300)...)
			app := start()
			app.catchUp()
			if n := w.opened(); n != 12 {
				t.Errorf("%d stores are open, want 6 for each of 2 tasks", n)
			}
			want := app.dumps()
			app.close()
			if n := w.opened(); n != 0 {
				t.Errorf("%d stores were not closed", n)
			}

			app = start()
			app.same("after a restart", want)
			if restored := app.restoredStores(); len(restored) != 0 {
				t.Errorf("%v were restored after a clean stop", restored)
			}
			e.produceRecords(s.records(e.in, 300)...)
			want = app.dumps()
			app.close()

			w.burn()
			if !manages { // the file that says how far they were goes the same way
				if err := os.RemoveAll(e.dir); err != nil {
					t.Fatal(err)
				}
			}
			app = start()
			app.same("after the loss", want)
			for _, store := range app.restoredStores() {
				if manages && !strings.HasPrefix(store, "own-") {
					t.Errorf("%s was restored, but not lost", store)
				}
			}
			app.close()
		})
	}
}

// A store that does not open fails its task with a text that names it, and leaves nothing open.
func TestOwnStoreThatDoesNotOpen(t *testing.T) {
	b := testbroker.Kfake(t)
	for want, open := range map[string]processor.StoreOpener{
		"the cellar is locked": func(processor.StorePlace) (statestore.StateStore, error) {
			return nil, errors.New("the cellar is locked")
		},
		"the function that opens it gives nil": func(processor.StorePlace) (statestore.StateStore, error) { return nil, nil },
		"panic: fire":                          func(processor.StorePlace) (statestore.StateStore, error) { panic("fire") },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e, w := newEnv(t, b, clients[0]), &warehouse{}
			topology := processor.NewTopology()
			processor.AddSource(topology, "source", serde.String, serde.String, e.in)
			processor.AddProcessor(topology, "p", func() processor.Pass[string, string] { return processor.Pass[string, string]{} }, []string{"source"},
				processor.KeyValue("a", serde.String, serde.String).KeptIn(w.store), processor.KeyValue("b", serde.String, serde.String).KeptIn(open))
			app := e.start(topology, e.config())
			app.fails("open store b of task 0_", e.dir, want) // the tasks are opened in parallel
			if n := w.opened(); n != 0 {
				t.Errorf("%d stores were left open", n)
			}
		})
	}
}
