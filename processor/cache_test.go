package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// holding is a table-like node: it holds its records back. A value "-" is not worth forwarding.
type holding struct {
	cache *processor.Cache[string, string]
}

func (h *holding) Init(ctx processor.Context[string, string]) (err error) {
	h.cache, err = processor.NewCache(ctx, serde.String, func(earlier, later string) string { return earlier + later },
		func(v string) (string, bool) { return "<" + v + ">", v != "-" })
	return err
}

func (h *holding) Process(_ processor.Context[string, string], r processor.Record[string, string]) error {
	return h.cache.Put(r)
}

// says forwards what a processor behind a cache sees of the record's origin.
func says(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	switch r.Value {
	case "<fail>":
		return errors.New("no")
	case "<panic>":
		panic("at the disco")
	}
	m, ok := ctx.Metadata()
	return ctx.Forward(processor.WithValue(r, fmt.Sprintf("%s %d/%v", r.Value, m.Offset, ok)))
}

// cached is a rig with two caches, one behind the other. beside: a node stands beside the first.
func cached(t *testing.T, caching processor.Caching, beside bool) *rig {
	t.Helper()
	top := processor.NewTopology()
	processor.AddSource(top, "source", serde.String, serde.String, "in")
	processor.AddProcessor(top, "table", func() *holding { return &holding{} }, []string{"source"})
	processor.AddProcessor(top, "behind", func() processor.Func[string, string, string, string] { return says }, []string{"table"})
	processor.AddProcessor(top, "second", func() *holding { return &holding{} }, []string{"behind"})
	processor.AddSink(top, "sink", "out", serde.String, serde.String, "second")
	if beside {
		processor.AddProcessor(top, "beside", func() processor.Func[string, string, string, string] { return says }, []string{"source"})
		processor.AddSink(top, "sink-beside", "beside", serde.String, serde.String, "beside")
	}
	r := prepare(t, top)
	r.env.Caching = caching
	r.start()
	return r
}

func (r *rig) flush() {
	r.t.Helper()
	if err := r.in.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// The last record of each key leaves at the flush, in the order of the last updates, in its own
// context, and goes through a second cache in the same flush.
func TestCache(t *testing.T) {
	r := cached(t, processor.Caching{}, false)
	r.mustSend("in", "a", "1", 10)
	r.mustSend("in", "b", "2", 11, kafka.Header{Key: "h", Value: []byte("b")})
	r.mustSend("in", "c", "-", 12)
	r.mustSend("in", "a", "3", 9, kafka.Header{Key: "h", Value: []byte("a")})
	r.expect()
	r.flush()
	r.expect("out b=<<2> 41/true> @11 h:b", "out a=<<13> 43/true> @9 h:a")
	r.flush()
	r.expect()
	// Nothing is left of the interval before.
	r.mustSend("in", "b", "4", 20)
	r.flush()
	r.expect("out b=<<4> 44/true> @20")
}

// At more keys than it may hold a cache forwards them all, and the record in process goes on in its
// own context.
func TestCacheIsBounded(t *testing.T) {
	r := cached(t, processor.Caching{MaxEntries: 2}, true)
	var all []string
	for i, kv := range []string{"a=0", "b=1", "a=2", "b=3", "c=-", "d=5", "e=6", "f=7"} {
		key, value, _ := strings.Cut(kv, "=")
		r.mustSend("in", key, value, int64(i))
		last := len(r.outputs) - 1
		if got, want := r.outputs[last], fmt.Sprintf("beside %s %d/true @%d", kv, 40+i, i); got != want {
			t.Errorf("beside: %s, want %s", got, want)
		}
		all = append(all, r.outputs[:last]...)
		r.outputs = nil
	}
	r.outputs = all
	// The first cache sends a and b at c, which is not worth it, and d, e and f at f; the second one,
	// which holds a and b, sends at d.
	r.expect("out a=<<02> 42/true> @2", "out b=<<13> 43/true> @3", "out d=<<5> 45/true> @5")
	r.flush()
	r.expect("out e=<<6> 46/true> @6", "out f=<<7> 47/true> @7")
}

// What goes wrong is told with the table, the key and the node, also when it happens while another
// record is processed.
func TestCacheErrors(t *testing.T) {
	for _, value := range []string{"fail", "panic"} {
		r := cached(t, processor.Caching{MaxEntries: 1}, false)
		r.mustSend("in", "good", value, 1)
		for _, err := range []error{r.in.Flush(), func() error {
			r := cached(t, processor.Caching{MaxEntries: 1}, false)
			r.mustSend("in", "good", value, 1)
			return r.send("in", []byte("other"), []byte("x"), 2)
		}()} {
			if err == nil || !strings.HasPrefix(err.Error(), `update of table table, key "good": node behind: `) {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
}
