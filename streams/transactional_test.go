package streams

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// initOnly answers Init with what stands in errs, one after another.
type initOnly struct {
	kafka.Transactional
	errs []error
}

func (x *initOnly) Init(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("Init is not bounded")
	}
	err := x.errs[0]
	x.errs = x.errs[1:]
	return err
}

// A coordinator that does not show up ends the application only at its first start.
func TestTransactionsUnavailableIsFatalOnlyAtFirst(t *testing.T) {
	unavailable := &kafka.Error{Class: kafka.ClassTransactionsUnavailable, Op: "initialise", Err: errors.New("no coordinator")}
	fenced := &kafka.Error{Class: kafka.ClassFenced, Op: "initialise"}
	var worked atomic.Bool
	txn := &transactional{Transactional: &initOnly{errs: []error{unavailable, nil, unavailable, fenced}}, id: "app-0", worked: &worked}
	for i, want := range []kafka.ErrorClass{kafka.ClassTransactionsUnavailable, 0, kafka.ClassRetriable, kafka.ClassFenced} {
		err := txn.Init(t.Context())
		switch {
		case i == 1:
			if err != nil {
				t.Errorf("attempt %d: %v", i, err)
			}
		case !kafka.IsClass(err, want):
			t.Errorf("attempt %d: %v, want class %v", i, err, want)
		case want == kafka.ClassRetriable && !errors.Is(err, unavailable):
			t.Errorf("the cause is not in %v", err)
		}
	}
}
