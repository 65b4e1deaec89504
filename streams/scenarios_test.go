package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// docs/torture.md says which known fault of which library each of these would find.

// keeping is a topology that counts values in stores, and writes the counts out.
func (e *env) keeping(stores ...string) *streams.Topology {
	e.t.Helper()
	both := streams.With(serde.String, serde.String)
	var handles []processor.KeyValueHandle[string, int64]
	var defs []processor.StoreDef
	for _, name := range stores {
		h := processor.KeyValue(name, serde.String, serde.Int64)
		handles, defs = append(handles, h), append(defs, h)
	}
	process := func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			text := r.Value
			for _, h := range handles {
				s := h.In(ctx)
				n, _, err := s.Get(r.Value)
				if err != nil {
					return err
				}
				if err := s.Put(r.Value, n+1); err != nil {
					return err
				}
				text += fmt.Sprint(" ", n+1)
			}
			return ctx.Forward(processor.WithValue(r, text))
		})
	}
	b := streams.NewBuilder()
	streams.Process(streams.Stream(b, e.in, both), process, both, defs...).To(e.out)
	topology, err := b.Build()
	if err != nil {
		e.t.Fatal(err)
	}
	return topology
}

// values gives the values of the output, sorted.
func (e *env) values() (all []string) {
	e.t.Helper()
	for _, r := range e.read(e.out) {
		all = append(all, string(r.Value))
	}
	slices.Sort(all)
	return all
}

// The input is partitioned by somebody else's hash: the same value is in both partitions. The state of
// a partition stays with it, also when the disk is lost.
func TestForeignPartitioning(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		var want []string
		for n := range 3 {
			app := e.start(e.keeping("counts"), e.config())
			// Twice to partition 0, once to partition 1, whatever the key says.
			for _, p := range []int32{0, 0, 1} {
				e.produceRecords(kafka.Record{Topic: e.in, Partition: p, Timestamp: 1, Key: []byte("k"), Value: []byte("v")})
			}
			app.catchUp()
			app.close()
			want = append(want, fmt.Sprint("v ", 2*n+1), fmt.Sprint("v ", 2*n+2), fmt.Sprint("v ", n+1))
			dirs, err := filepath.Glob(filepath.Join(e.dir, e.app, "*_*"))
			must(t, err)
			for _, dir := range dirs {
				must(t, os.RemoveAll(dir))
			}
		}
		slices.Sort(want)
		if got := e.values(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// A store that is added to a topology begins empty; its neighbour is neither wiped nor restored.
func TestStoreIsAdded(t *testing.T) {
	t.Parallel()
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, e *env) {
				cfg := e.config()
				cfg.Guarantee = g
				app := e.start(e.keeping("one"), cfg)
				e.produce("v", "v")
				app.catchUp()
				app.close()
				app = e.start(e.keeping("one", "two"), cfg)
				e.produce("v", "v")
				app.catchUp()
				for _, w := range app.Status().Workers {
					for _, x := range w.Tasks {
						for _, r := range x.Restore {
							if r.Records > 0 {
								t.Errorf("store %s was restored with %d records", r.Store, r.Records)
							}
						}
					}
				}
				app.close()
				// And taken out again: what it held is not asked for any more.
				app = e.start(e.keeping("one"), cfg)
				e.produce("v", "v")
				app.catchUp()
				app.close()
				want := []string{"v 1", "v 1", "v 2 1", "v 2 1", "v 3", "v 3"}
				if got := e.values(); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		})
	}
}
