package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/tidemark-streams/tidemark/examples/internal/topics"
	"github.com/tidemark-streams/tidemark/kafka"
)

// A program that is interrupted says so, and not that no broker answered. What fails otherwise is told, also then.
func TestOutcome(t *testing.T) {
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	waiting, silent := stoppedWhileWaiting(t)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		text string
		code int
	}{
		"before a broker's answer":      {waiting, silent, "interrupted", 130},
		"in the middle":                 {interrupted, errors.Join(context.Canceled, nil), "interrupted", 130},
		"interrupted, and yet an error": {interrupted, broken, "broken", 1},
		"beside an error":               {interrupted, errors.Join(context.Canceled, broken), "context canceled\nbroken", 1},
		"an error below":                {interrupted, fmt.Errorf("close: %w", errors.Join(context.Canceled, broken)), "close: context canceled\nbroken", 1},
		"a cancel below":                {interrupted, fmt.Errorf("run: %w", errors.Join(context.Canceled, context.Canceled)), "interrupted", 130},
		"no broker":                     {interrupted, &kafka.Error{Class: kafka.ClassUnreachable, Op: "ask", Err: broken}, "interrupted", 130},
		"an error":                      {t.Context(), broken, "broken", 1},
		"a cancel that is not the user": {t.Context(), context.Canceled, context.Canceled.Error(), 1},
	} {
		if text, code := outcome(c.ctx, c.err); text != c.text || code != c.code {
			t.Errorf("%s: %q, code %d; want %q, code %d (of %v)", name, text, code, c.text, c.code, c.err)
		}
	}
}

// stoppedWhileWaiting gives the context and the error of a run that is stopped while it waits for a broker, which hangs up.
func stoppedWhileWaiting(t *testing.T) (context.Context, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { // ended by the listener's close
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			if n == 3 { // the client knows of the first
				stop()
			}
		}
	}()
	err = topics.Create(ctx, []string{l.Addr().String()}, 1, "topic")
	_ = l.Close()
	return ctx, err
}
