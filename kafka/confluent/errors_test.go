//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want kafka.ErrorClass
	}{
		{ck.NewError(ck.ErrTimedOut, "", false), kafka.ClassTimeout},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), kafka.ClassTimeout},
		{ck.NewError(ck.ErrFenced, "", true), kafka.ClassFenced},
		{ck.NewError(ck.ErrFencedInstanceID, "", true), kafka.ClassInstanceFenced},
		{ck.NewError(ck.ErrTransactionalIDAuthorizationFailed, "", true), kafka.ClassUnauthorized},
		// Fatal: whatever else the code says, the instance is of no use any more.
		{ck.NewError(ck.ErrUnknownTopicOrPart, "", true), kafka.ClassFatal},
		{ck.NewError(ck.ErrAutoOffsetReset, "", false), kafka.ClassOffsetOutOfRange},
		{ck.NewError(ck.ErrOutOfOrderSequenceNumber, "", false), kafka.ClassFatal}, // no class of its own
		{errors.New("no librdkafka error"), kafka.ClassFatal},
	} {
		if got := classOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}
