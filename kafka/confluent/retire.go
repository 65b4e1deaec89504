//go:build cgo

package confluent

import (
	"context"
	"fmt"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// retire ends the instance in a goroutine of its own: settled is closed when every record
// has its fate and was reported, gone when the instance is destroyed.
func (n *sender) retire() {
	if !n.retired.CompareAndSwap(false, true) {
		return
	}
	n.shut()
	stuck := time.AfterFunc(stuckAfter, n.abandon)
	go func() {
		defer close(n.gone)
		defer stuck.Stop()
		n.ledger.close(n.closedError())
		<-n.ledger.waitIdle()
		close(n.settled)
		n.calls.Wait() // destroying it under a call would be a crash
		n.sending.Lock()
		defer n.sending.Unlock()
		// What is queued must not be written after this.
		_ = n.p.Purge(ck.PurgeQueue | ck.PurgeInFlight | ck.PurgeNonBlocking)
		n.p.Close()
		n.wire.close()
	}()
}

// shut refuses further Sends.
func (n *sender) shut() {
	if n.closing.CompareAndSwap(false, true) {
		close(n.stop)
	}
}

func (n *sender) abandon() { n.counted.Do(kafka.CountAbandoned) }

// close retires the instance and waits until it is destroyed, or the context ends.
// Destroying takes a moment even when nothing hangs: the binding's goroutines look at
// their end every 100 ms.
func (n *sender) close(ctx context.Context, op, on string) error {
	n.retire()
	if inTime(ctx, n.gone) {
		return nil
	}
	n.abandon()
	return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: on,
		Err: fmt.Errorf("the librdkafka producer %s did not end in time and was left behind: %w", n.p, ctx.Err())}
}
