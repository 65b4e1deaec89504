package embedded

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A poll under the host's context ends when the host fails, and one that was not begun yet too.
func TestContextEndsWithTheHost(t *testing.T) {
	h := &Host{log: slog.New(slog.DiscardHandler)}
	h.life, h.end = context.WithCancel(t.Context())
	h.well, h.unwell = context.WithCancel(h.life)
	defer h.end()
	given, forget := h.Context(t.Context())
	forget()
	if given.Err() == nil {
		t.Error("the cancel function does nothing")
	}
	ctx, cancel := h.Context(t.Context())
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("it ended before the host did")
	}
	h.fail(errors.New("disk"))
	<-ctx.Done()
	late, cancel := h.Context(t.Context())
	defer cancel()
	<-late.Done()
	if h.life.Err() != nil {
		t.Error("a failure ends what only Close may end")
	}
}
