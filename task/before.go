package task

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/tidemark-streams/tidemark/kafka"
)

// runBefore calls what the user wants to be done before the interval's offsets are committed. A
// failure drops the interval, whose records are then read again.
func (iv *interval) runBefore(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = &kafka.Error{Class: kafka.ClassAbortable, Op: "before the commit", Err: err}
		}
	}()
	for _, f := range iv.before {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}
