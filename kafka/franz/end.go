package franz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Commit commits if every delivery succeeded.
func (t *transactional) Commit(ctx context.Context) error {
	const op = "commit transaction of"
	if err := t.allow(op, inside); err != nil {
		return err
	}
	c := t.link.call(op)
	if err := t.deliver(ctx, c); err != nil {
		return err
	}
	var err error
	switch {
	case t.sent:
		err = t.endClient(ctx, kgo.TryCommit)
	case t.offsets:
		// franz-go knows nothing of these offsets and would end the transaction in silence
		err = t.endRaw(ctx, true)
	}
	if err != nil {
		return t.notCommitted(c, err)
	}
	if !t.sent {
		if err := t.cl.EndTransaction(ctx, kgo.TryCommit); err != nil { // sends nothing
			return t.notCommitted(c, err)
		}
	}
	t.state = ready
	return nil
}

// deliver waits for the deliveries of the transaction.
//
// The abort of nothing at its end is a barrier. When franz-go learns of a topic it starts
// to send before it has stored the topic's partitions, and EndTransaction looks for what
// was produced among the stored ones: if all is delivered in between, it ends in silence,
// or aborts instead of committing and reports success. The abort takes the lock that is
// held until they are stored.
func (t *transactional) deliver(ctx context.Context, c call) error {
	err := t.cl.Flush(ctx) // does not wait for the linger
	if err == nil {
		err = t.settled(ctx)
	}
	if err == nil {
		err = t.cl.AbortBufferedRecords(ctx)
	}
	if err != nil {
		t.state = failed
		return c.class(kafka.ClassAbortable, t.cfg.ID, fmt.Errorf("not everything was delivered: %w", c.fail("", err)))
	}
	failure := t.firstFailure()
	if failure == nil {
		return nil
	}
	if kafka.IsClass(failure, kafka.ClassFenced) {
		t.state = lost
		return c.class(kafka.ClassFenced, t.cfg.ID, failure)
	}
	t.state = failed
	return c.class(kafka.ClassAbortable, t.cfg.ID, failure)
}

// errNotEnded guards against a client that reports the end of a transaction without
// having asked the broker for it.
var errNotEnded = errors.New("the client reported success, but no broker answered")

// endClient ends a transaction with records through franz-go, which follows the epochs.
func (t *transactional) endClient(ctx context.Context, how kgo.TransactionEndTry) error {
	before := t.link.ends.Load()
	if err := t.cl.EndTransaction(ctx, how); err != nil {
		return err
	}
	if t.link.ends.Load() == before {
		return errNotEnded
	}
	return nil
}

// endRaw ends a transaction that franz-go knows nothing of. The version is capped because
// from version 5 on the broker gives the producer a new epoch, which franz-go would not
// learn.
func (t *transactional) endRaw(ctx context.Context, commit bool) error {
	id, epoch, err := t.current(ctx)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.cfg.ID, id, epoch, commit
	to := route{coordinatesTransaction, t.cfg.ID}
	for pause := concurrentBackoff; ; pause = min(2*pause, 200*time.Millisecond) {
		resp, err := t.once(ctx, to, capped{req, 4})
		if err == nil {
			err = kerr.ErrorForCode(resp.(*kmsg.EndTxnResponse).ErrorCode)
		}
		if err == nil || !again(err) {
			return err
		}
		delete(t.routes, to)
		if werr := t.link.wait(ctx, pause); werr != nil {
			return fmt.Errorf("%w: %w", err, werr)
		}
	}
}

// notCommitted classifies an error of the request that ends a transaction. Whatever is
// not a clear refusal leaves the outcome unknown.
func (t *transactional) notCommitted(c call, err error) error {
	switch class := classOf(err); class {
	case kafka.ClassFenced, kafka.ClassUnauthorized:
		t.state = lost
		return c.class(class, t.cfg.ID, err)
	case kafka.ClassAbortable:
		t.state = failed
		return c.class(class, t.cfg.ID, err)
	}
	t.state = lost
	return c.class(kafka.ClassInDoubt, t.cfg.ID, err)
}

// Abort drops what is buffered and ends the transaction at the broker.
func (t *transactional) Abort(ctx context.Context) error {
	const op = "abort transaction of"
	if err := t.allow(op, inside, failed); err != nil {
		return err
	}
	c := t.link.call(op)
	err := t.cl.AbortBufferedRecords(ctx)
	if err == nil {
		err = t.settled(ctx)
	}
	if err == nil {
		err = t.abort(ctx)
	}
	if err != nil {
		t.state = lost
		if classOf(err) == kafka.ClassFenced {
			return c.class(kafka.ClassFenced, t.cfg.ID, err)
		}
		return c.class(kafka.ClassInDoubt, t.cfg.ID, err)
	}
	t.state = ready
	return nil
}

func (t *transactional) abort(ctx context.Context) error {
	err := t.endClient(ctx, kgo.TryAbort)
	if err != nil && !errors.Is(err, errNotEnded) {
		return err
	}
	// franz-go sends nothing when it thinks that nothing was produced, but offsets, or a
	// partition whose produce failed, may have opened the transaction.
	if err != nil && (t.sent || t.offsets) {
		if err := t.endRaw(ctx, false); err != nil && !errors.Is(err, kerr.InvalidTxnState) { // there was none
			return err
		}
	}
	// A producer id that franz-go wants to load anew is loaded now, within the context:
	// Begin has none.
	_, _, err = t.current(ctx)
	return err
}
