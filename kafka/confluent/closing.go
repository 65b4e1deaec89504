//go:build cgo

package confluent

import (
	"context"
	"fmt"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// dismissWithin is how long an answer to a rebalance is waited for while the consumer is closed.
const dismissWithin = 2 * time.Second

// Dismiss answers a rebalance that reaches the callback inside the consumer's Close, where every answer means to
// give up everything. Nothing else may be asked of the consumer then. A rebalance may still be queued when the group has
// moved on, and what librdkafka is asked in the moment in which its group ends it drops without an answer
// (rd_kafka_cgrp_op_serve, "terminated"; seen in 2.11.1, the same in 2.12.1): the caller would wait for ever, and with it Close.
func Dismiss(c *ck.Consumer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Unassign() // an error says that there is no group any more
	}()
	timer := time.NewTimer(dismissWithin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		kafka.CountAbandoned() // the goroutine; Close goes on
	}
}

// CloseConsumer closes a consumer, and leaves one behind (see [kafka.Abandoned]) that has not ended with the context and a
// short grace: after a fatal error librdkafka never says that the group has ended. Nobody polls it meanwhile.
func CloseConsumer(ctx context.Context, c *ck.Consumer) error {
	const op = "close the consumer"
	closed, err := endConsumer(ctx, op, c, func() {})
	if closed && err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return err
}

// endConsumer closes a consumer and calls after. The error is the library's, or, if the consumer was not closed in time, says that
// it was left behind.
func endConsumer(ctx context.Context, op string, c *ck.Consumer, after func()) (closed bool, err error) {
	done := make(chan struct{})
	var cerr error // not a result: a return would write to it
	go func() {
		defer close(done)
		cerr = c.Close()
		after()
	}()
	if inTime(ctx, done) {
		return true, cerr
	}
	kafka.CountAbandoned()
	return false, &kafka.Error{Class: kafka.ClassTimeout, Op: op,
		Err: fmt.Errorf("the librdkafka consumer %s did not end in time and was left behind: %w", c, ctx.Err())}
}
