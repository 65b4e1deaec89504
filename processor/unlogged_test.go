package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Each kind of handle can be without a changelog, and says so where definitions are compared and shown.
func TestUnloggedHandles(t *testing.T) {
	k, v := serde.String, serde.Int64
	for _, h := range []processor.StoreDef{
		processor.KeyValue("s", k, v).Unlogged(), processor.TimestampedKeyValue("s", k, v).Unlogged(),
		processor.Window("s", k, v, time.Second, time.Hour).Unlogged(), processor.TimestampedWindow("s", k, v, time.Second, time.Hour).Unlogged(),
		processor.Session("s", k, v, time.Hour).Unlogged(), processor.Versioned("s", k, v, time.Hour).Unlogged(),
	} {
		d := h.Definition()
		if !d.Unlogged || !strings.Contains(d.String(), "without a changelog") || d.Spec().Changelog != "" {
			t.Errorf("%v: unlogged %t, spec %+v", d, d.Unlogged, d.Spec())
		}
		if err := d.CheckExactlyOnce(); err == nil || !strings.Contains(err.Error(), "store s") {
			t.Errorf("%v under exactly-once: %v", d, err)
		}
		d.Unlogged = false
		if err := d.CheckExactlyOnce(); err != nil {
			t.Errorf("%v under exactly-once: %v", d, err)
		}
	}
}

func TestUnloggedRefuses(t *testing.T) {
	h := processor.KeyValue("s", serde.String, serde.Int64).Unlogged()
	for what, d := range map[string]processor.StoreDef{
		"in memory and has no changelog":         h.InMemory(),
		"no changelog and is kept in a store of": h.KeptIn(func(processor.StorePlace) (statestore.StateStore, error) { return nil, nil }),
	} {
		top := processor.NewTopology()
		processor.AddSource(top, "in", serde.String, serde.String, "in")
		processor.AddProcessor(top, "p", func() processor.Processor[string, string, string, string] {
			return processor.Func[string, string, string, string](func(processor.Context[string, string], processor.Record[string, string]) error { return nil })
		}, []string{"in"}, d)
		if err := top.Build(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v does not say %q", err, what)
		}
	}
}

// replayed notes what it is called with.
type replayed struct{ seen *[]string }

func (p replayed) Init(ctx processor.Context[string, string]) error {
	ctx.Schedule(time.Second, processor.StreamTime, func(time.Time) error {
		*p.seen = append(*p.seen, "punctuated")
		return nil
	})
	return nil
}

func (p replayed) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	if ctx.Replaying() {
		r.Value += " again"
	}
	*p.seen = append(*p.seen, r.Value)
	return nil
}

// A replay processes records, which can tell, and runs no punctuation.
func TestReplayingInstance(t *testing.T) {
	for _, replaying := range []bool{false, true} {
		var seen []string
		top := processor.NewTopology()
		processor.AddSource(top, "in", serde.String, serde.String, "in")
		processor.AddProcessor[string, string, string, string](top, "p", func() replayed { return replayed{&seen} }, []string{"in"})
		r := prepare(t, top)
		r.env.Replaying = replaying
		r.start()
		r.mustSend("in", "k", "one", 1000)
		r.mustSend("in", "k", "two", 9000)
		want := "one punctuated two punctuated"
		if replaying {
			want = "one again two again"
		}
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("replaying %t: %s", replaying, got)
		}
	}
}
