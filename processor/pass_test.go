package processor_test

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

type toBoth struct{}

// Process forwards to all children, and then to one by name.
func (toBoth) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	if err := ctx.Forward(r); err != nil {
		return err
	}
	return ctx.ForwardTo("first", processor.WithValue(r, "by name"))
}

// Records go past a Pass, in the same order as through it, and it stays where it is for
// everything else: by name, in the description, with nothing behind it.
func TestPass(t *testing.T) {
	newPass := func() processor.Pass[string, string] { return processor.Pass[string, string]{} }
	top := processor.NewTopology()
	processor.AddSource(top, "in", serde.String, serde.String, "in")
	processor.AddProcessor(top, "both", func() toBoth { return toBoth{} }, []string{"in"})
	processor.AddProcessor(top, "first", newPass, []string{"both"})
	processor.AddProcessor(top, "second", newPass, []string{"first", "in"})
	processor.AddProcessor(top, "end", newPass, []string{"second"})
	processor.AddSink(top, "a", "a", serde.String, serde.String, "first")
	processor.AddSink(top, "b", "b", serde.String, serde.String, "second")
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 5)
	r.expect("b k=v @5", "a k=v @5", "b k=by name @5", "a k=by name @5", "b k=v @5")
	if text := top.Describe(); !strings.Contains(text, "Processor: second") {
		t.Errorf("the node is not described:\n%s", text)
	}
}
