package streams_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
)

// brittle is a warehouse whose stores fail once, at an Apply of writes: a commit, behind its transaction.
type brittle struct {
	warehouse
	// done says how many of the writes are made before it fails.
	done func(writes int) int

	mu     sync.Mutex
	armed  bool
	failed map[string]string // the writes of the Apply that failed
}

func (b *brittle) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = true
}

func (b *brittle) store(place processor.StorePlace) (statestore.StateStore, error) {
	s, err := b.warehouse.store(place)
	if err != nil {
		return nil, err
	}
	return brittleRoom{s.(*room), b}, nil
}

type brittleRoom struct {
	*room
	b *brittle
}

var errBrittle = errors.New("the shelf broke down")

func (r brittleRoom) Apply(writes []statestore.Row, at statestore.StorePoint) error {
	if len(writes) == 0 || at.ID == (statestore.CommitID{}) { // of a restore, or with nothing to lose
		return r.room.Apply(writes, at)
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if !r.b.armed {
		return r.room.Apply(writes, at)
	}
	r.b.armed = false
	r.b.failed = map[string]string{}
	for _, w := range writes {
		r.b.failed[string(w.Key)] = string(w.Value)
	}
	n := r.b.done(len(writes))
	switch {
	case r.b.manages && n == len(writes):
		return errors.Join(r.room.Apply(writes, at), errBrittle)
	case n > 0:
		return errors.Join(r.room.Apply(writes[:n], r.at), errBrittle)
	}
	return errBrittle
}

// A store fails behind the transaction that committed its writes, before it made them, when it had made some (of a store that
// keeps no offsets), or after all of them. The application ends and says so. When it starts again each record counts
// once, in that store and in the one beside it in the task's database, whatever was on the disk when it ended.
func TestApplyFailsBehindTheTransaction(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	none, some, all := func(int) int { return 0 }, func(n int) int { return n / 2 }, func(n int) int { return n }
	for _, g := range guarantees {
		for name, x := range map[string]struct {
			manages bool
			done    func(int) int
		}{
			"none/with offsets": {true, none}, "all/with offsets": {true, all},
			"none/without offsets": {false, none}, "some/without offsets": {false, some}, "all/without offsets": {false, all},
		} {
			t.Run(g.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, b, clients[0])
				w := &brittle{warehouse: warehouse{manages: x.manages}, done: x.done}
				cfg := e.config()
				cfg.Guarantee = g
				topology := e.countedTwice(w)
				var in []string
				want := map[string]int64{}
				for i := range 60 {
					word := fmt.Sprint("w", i%7)
					in = append(in, word)
					want[word]++
				}
				app := e.start(topology, cfg)
				e.produce(in[:30]...)
				app.catchUp()
				w.arm()
				e.produce(in[30:]...)
				app.fails(errBrittle.Error(), `store "own"`, "task 0_")
				e.committedBehind(w)
				_ = app.Close(e.ctx())

				app = e.start(topology, cfg)
				app.catchUp()
				app.close()
				w.check(t, want)
				e.checkSums(g, want)

				e.loseDisk() // the changelog says the same
				w.burn()
				e.produce(in...)
				app = e.start(topology, cfg)
				app.catchUp()
				app.close()
				for word := range want {
					want[word] *= 2
				}
				w.check(t, want)
				e.checkSums(g, want)
			})
		}
	}
}

// countedTwice counts values in a store of the program's own and in one of the task's database, and gives both counts.
func (e *env) countedTwice(w *brittle) *streams.Topology {
	e.t.Helper()
	both := streams.With(serde.String, serde.String)
	own := processor.KeyValue("own", serde.String, serde.Int64).KeptIn(w.store)
	beside := processor.KeyValue("beside", serde.String, serde.Int64)
	process := func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			var counts [2]int64
			for i, h := range []processor.KeyValueHandle[string, int64]{own, beside} {
				n, _, err := h.In(ctx).Get(r.Value)
				if err != nil {
					return err
				}
				if err := h.In(ctx).Put(r.Value, n+1); err != nil {
					return err
				}
				counts[i] = n + 1
			}
			return ctx.Forward(processor.Record[string, string]{Key: r.Value, Value: fmt.Sprint(counts), Timestamp: r.Timestamp})
		})
	}
	b := streams.NewBuilder()
	streams.Process(streams.Stream(b, e.in, both), process, both, own, beside).To(e.out)
	topology, err := b.Build()
	must(e.t, err)
	return topology
}

// committedBehind makes sure that the writes that failed were committed to the changelog.
func (e *env) committedBehind(w *brittle) {
	e.t.Helper()
	w.mu.Lock()
	failed := maps.Clone(w.failed)
	w.mu.Unlock()
	if len(failed) == 0 {
		e.t.Fatal("no Apply has failed")
	}
	for _, r := range e.read(e.app + "-own-changelog") {
		if v, ok := failed[string(r.Key)]; ok && v == string(r.Value) {
			delete(failed, string(r.Key))
		}
	}
	if len(failed) > 0 {
		e.t.Errorf("the changelog has no %q", slices.Sorted(maps.Keys(failed)))
	}
}

// check compares what the stores have, of all partitions together.
func (b *brittle) check(t *testing.T, want map[string]int64) {
	t.Helper()
	b.warehouse.mu.Lock()
	defer b.warehouse.mu.Unlock()
	got := map[string]int64{}
	for _, r := range b.rooms {
		for k, v := range r.rows {
			n, err := serde.Int64.Decode(v)
			must(t, err)
			got[k] += n
		}
	}
	if !cmp.Equal(want, got) {
		t.Errorf("the stores: -want +got\n%s", cmp.Diff(want, got))
	}
}

// checkSums compares the outputs: both stores have the same counts at every record, and there is one for each record.
func (e *env) checkSums(g streams.Guarantee, want map[string]int64) {
	e.t.Helper()
	got := map[string]int64{}
	for _, r := range e.read(e.out) {
		var own, beside int64
		if _, err := fmt.Sscanf(string(r.Value), "[%d %d]", &own, &beside); err != nil || own != beside {
			e.t.Errorf("%s: %s, %v; want the same counts", r.Key, r.Value, err)
		}
		got[string(r.Key)]++
	}
	if g == streams.ExactlyOnce && !cmp.Equal(want, got) {
		e.t.Errorf("outputs: -want +got\n%s", cmp.Diff(want, got))
	}
	for word, n := range want {
		if got[word] < n {
			e.t.Errorf("%d outputs for %s, want %d", got[word], word, n)
		}
	}
}
