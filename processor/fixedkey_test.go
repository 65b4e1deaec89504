package processor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// valuesOnly tries to change keys, to one child by name, to all, and when there is no record.
type valuesOnly struct {
	ctx    strCtx
	closed *int
}

func (p *valuesOnly) Init(ctx strCtx) error { p.ctx = ctx; return nil }

func (p *valuesOnly) Process(ctx strCtx, r strRec) error {
	r = processor.WithKey(r, "another")
	if err := ctx.Forward(r); err != nil {
		return err
	}
	return ctx.ForwardTo("named", r)
}

func (p *valuesOnly) Close() error { *p.closed++; return errors.New("close failed") }

func TestFixedKeyProcessor(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	closed := 0
	var last *valuesOnly
	processor.AddFixedKeyProcessor(top, "values", func() *valuesOnly { last = &valuesOnly{closed: &closed}; return last }, []string{"source"})
	sink(top, "named", "out", "values")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 1)
	if err := r.send("in", nil, []byte("v"), 2); err != nil {
		t.Fatal(err)
	}
	r.expect("out k=v @1", "out k=v @1", "out ∅=v @2", "out ∅=v @2")
	for _, forward := range []func() error{func() error { return last.ctx.Forward(strRec{}) }, func() error { return last.ctx.ForwardTo("named", strRec{}) }} {
		if err := forward(); err == nil || !strings.Contains(err.Error(), "no key to forward with") {
			t.Error(err)
		}
	}
	if r.closed = true; closed != 0 || r.in.Close() == nil || closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

func TestFixedKeyProcessorIsCheckedAsOthers(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	shared := &valuesOnly{}
	processor.AddFixedKeyProcessor(top, "shared", func() *valuesOnly { return shared }, []string{"source"})
	processor.AddFixedKeyProcessor(top, "nil", func() processor.Processor[string, string, string, string] { return nil }, []string{"source"})
	err := top.Build()
	if err == nil || !strings.Contains(err.Error(), "shared: the function that makes it gives the same one twice") || !strings.Contains(err.Error(), "nil: the function that makes it gives nil") {
		t.Error(err)
	}
}

// TestCopartitions are the topics that records come from, not those they come through.
func TestCopartitions(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddSource(top, "table", serde.String, serde.String, "b", "a")
	add(top, "far", func(ctx strCtx, r strRec) error { return ctx.Forward(r) }, "source")
	add(top, "near", func(ctx strCtx, r strRec) error { return ctx.Forward(r) }, "far", "source")
	sink(top, "sink", "out", "near")
	top.AddCopartition("near", "table")
	if err := top.Build(); err != nil {
		t.Fatal(err)
	}
	if got := top.Copartitions(); len(got) != 1 || strings.Join(got[0], " ") != "a b in" {
		t.Error(got)
	}
	whole := top.Undivided()
	if len(top.Subtopologies()) != 2 || strings.Join(whole.Sources, " ") != "a b in" || strings.Join(whole.Sinks, " ") != "out" {
		t.Errorf("%d parts; the whole reads %v and writes %v", len(top.Subtopologies()), whole.Sources, whole.Sinks)
	}
}
