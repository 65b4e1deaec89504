package command

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tidemark-streams/tidemark/kafka"
)

// CodeInterrupted is the exit code of a program that a signal has ended before it was done, as shells have it.
const CodeInterrupted = 130

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

// Interrupted tells whether a run has failed because its user has stopped it. A broker that was not waited for any longer is a
// part of that: that it did not answer is not the reason.
func Interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || kafka.IsClass(err, kafka.ClassUnreachable))
}
