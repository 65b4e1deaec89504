package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-streams/tidemark/kafka"
)

// CodeInterrupted is the exit code of a program that a signal has ended before it was done, as shells have it.
const CodeInterrupted = 130

// Context gives a context that ends with the first Ctrl-C or SIGTERM; the second one ends the program at once. Call stop in the end.
func Context() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Fail ends a program whose run has failed, and says why on standard error. ctx is that of the run, which ends with a signal.
func Fail(ctx context.Context, name string, err error) {
	text, code := outcome(ctx, err)
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, text)
	os.Exit(code)
}

func outcome(ctx context.Context, err error) (text string, code int) {
	if Interrupted(ctx, err) {
		return "interrupted", CodeInterrupted
	}
	return err.Error(), 1
}

// Interrupted tells whether a run has failed only because its user has stopped it. A broker that was not waited for any longer is a
// part of that: that it did not answer is not the reason. What failed beside it, when the program closed for one, is told.
func Interrupted(ctx context.Context, err error) bool {
	if ctx.Err() == nil {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !Interrupted(ctx, e) {
				return false
			}
		}
		return true
	}
	if kafka.IsClass(err, kafka.ClassUnreachable) {
		return true
	}
	if inner := errors.Unwrap(err); inner != nil {
		return Interrupted(ctx, inner)
	}
	return err == context.Canceled //nolint:errorlint // the innermost, of one path
}
