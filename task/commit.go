package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// interval is what a worker did between two seals: it is committed as a whole.
type interval struct {
	outputs *deliveries // at-least-once: the user's outputs, sent as they arise
	changes *deliveries // what is written inside the transaction
	held    []*slab     // records that wait for the transaction
	tasks   []*sealedTask
	before  []func(context.Context) error // the user's, called before the transaction
	records int
	started time.Time  // when its first record was processed
	seed    *seedPiece // instead of all else: the piece of a seeding that is being written
}

func newInterval() *interval {
	return &interval{outputs: newDeliveries(), changes: newDeliveries()}
}

// sealedTask is a task's part of a sealed interval.
type sealedTask struct {
	task     *Task
	sealed   *statestore.Sealed
	progress statestore.Progress
	offsets  []kafka.CommittedOffset
	change   ChangeHeader
	header   []kafka.Header // change, encoded
}

// commitResult is what became of a sealed interval.
type commitResult struct {
	interval *interval
	// transacted: the transaction is known to be committed. With an error behind it, the
	// failure is that of a store.
	transacted bool
	err        error
	took       time.Duration
}

// commit carries a sealed interval through the steps of a commit. It runs on the commit
// goroutine, which owns the transactional producer until the result is sent.
func (w *Worker) commit(ctx context.Context, iv *interval) (res commitResult) {
	start := time.Now()
	res.interval = iv
	defer func() { res.took = time.Since(start) }()
	if p := iv.seed; p != nil {
		if res.err = w.writePiece(ctx, p); res.err != nil {
			res.err = p.seed.fail(p.task, res.err)
		}
		return res
	}
	failpoint.Hit("sealed")
	// At-least-once: an offset must not be committed before the outputs of the records in
	// front of it are safe.
	if err := iv.outputs.wait(ctx); err != nil {
		res.err = fmt.Errorf("deliver outputs: %w", err)
		return res
	}
	if err := iv.runBefore(ctx); err != nil {
		res.err = err
		return res
	}
	failpoint.Hit("outputs-delivered")
	if res.err = w.transact(ctx, iv); res.err != nil {
		w.abort(ctx, res.err)
		if kafka.IsClass(res.err, kafka.ClassUnauthorized) {
			// A client may say only that a topic of the transaction is not allowed.
			res.err = fmt.Errorf("%w (the transaction writes %s)", res.err, strings.Join(w.transactionTopics(iv), ", "))
		}
		return res
	}
	res.transacted = true
	failpoint.Hit("transaction-committed")
	res.err = apply(iv)
	failpoint.Hit("applied")
	return res
}

// transactionTopics are those that the transaction of an interval may write, sorted.
func (w *Worker) transactionTopics(iv *interval) []string {
	topics := map[string]bool{}
	for _, t := range iv.tasks {
		for _, name := range t.task.logged() {
			topics[t.task.changelog(name).Topic] = true
		}
		for _, sink := range t.task.sub.Sinks {
			if s := w.sinks[sink]; s.transactional {
				topics[s.name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}

// abort ends a transaction that failed, for the sake of its readers, who wait at it; it is not
// needed for correctness, so its own error does not count. One in doubt must not be aborted.
func (w *Worker) abort(ctx context.Context, cause error) {
	switch kafka.ClassOf(cause) {
	case kafka.ClassInDoubt, kafka.ClassFenced, kafka.ClassClosed:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := w.txn.Abort(ctx); err != nil {
		w.log.Debug("abort transaction", "error", err)
	}
}

// transact writes the interval's transaction: held outputs, changelog, offsets.
func (w *Worker) transact(ctx context.Context, iv *interval) error {
	txn := w.txn
	if err := txn.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	failpoint.Hit("transaction-begun")
	for _, s := range iv.held {
		if err := iv.changes.send(ctx, txn, s.records, func() { w.box.recycle(s) }); err != nil {
			return fmt.Errorf("send held outputs: %w", err)
		}
	}
	iv.held = nil
	failpoint.Hit("held-sent")
	var offsets []kafka.CommittedOffset
	for _, t := range iv.tasks {
		if err := w.sendChanges(ctx, iv, t); err != nil {
			return err
		}
		offsets = append(offsets, t.offsets...)
	}
	failpoint.Hit("changelog-sent")
	if err := w.sendOffsets(ctx, offsets); err != nil {
		return err
	}
	failpoint.Hit("offsets-sent")
	return w.commitTransaction(ctx, iv.changes)
}

// commitTransaction commits what was begun, of which sent knows the deliveries.
func (w *Worker) commitTransaction(ctx context.Context, sent *deliveries) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.RetryTimeout)
	defer cancel()
	err := w.txn.Commit(ctx)
	if err == nil {
		return nil
	}
	// The delivery that failed says more than the transaction that could not commit: a record
	// that is too large is not to be tried again.
	if derr := sent.failed(); derr != nil && kafka.IsClass(err, kafka.ClassAbortable) {
		err = derr
	}
	return fmt.Errorf("commit transaction: %w", err)
}

// transactBeside is a transaction that is no interval's: write sends into it. One that fails is aborted.
func (w *Worker) transactBeside(ctx context.Context, write func(sent *deliveries) error) (err error) {
	if err := w.txn.Begin(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() {
		if err != nil {
			w.abort(ctx, err)
		}
	}()
	sent := newDeliveries()
	if err := write(sent); err != nil {
		return err
	}
	return w.commitTransaction(ctx, sent)
}

// changesPerSend is how many changelog records are handed to the producer at once.
const changesPerSend = 4096

// sendChanges produces one changelog record for each key that the interval wrote, to the
// task's own partition whatever partitioner the application uses.
func (w *Worker) sendChanges(ctx context.Context, iv *interval, t *sealedTask) error {
	var batch []kafka.Record
	topics := map[string]string{}
	for _, name := range t.task.logged() {
		topics[name] = t.task.changelog(name).Topic
	}
	if len(topics) == 0 {
		return nil
	}
	headers := map[uint32][]kafka.Header{0: t.header}
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := iv.changes.send(ctx, w.txn, batch, nil); err != nil {
			return &Error{Task: t.task.id, Err: fmt.Errorf("send changelog: %w", err)}
		}
		batch = nil
		return nil
	}
	left := t.sealed.Len()
	for c := range t.sealed.Changes() {
		topic, logged := topics[c.Store]
		if !logged {
			left--
			continue
		}
		if batch == nil {
			batch = make([]kafka.Record, 0, min(left, changesPerSend))
		}
		header, ok := headers[c.Schema]
		if !ok {
			header = t.schemaHeader(c.Schema)
			headers[c.Schema] = header
		}
		batch = append(batch, kafka.Record{Topic: topic, Partition: t.task.id.Partition, Timestamp: c.Timestamp, Key: c.Key, Value: c.Value, Headers: header})
		left--
		if len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// schemaHeader is t.header for values of a schema version.
func (t *sealedTask) schemaHeader(schema uint32) []kafka.Header {
	h := t.change
	h.Schema = schema
	return []kafka.Header{{Key: HeaderKey, Value: h.Append(nil)}}
}

// ErrLost means that the group gave this process's place away: its tasks are not its own any
// more.
var ErrLost = errors.New("the group lost this member")

// sendOffsets puts the offsets into the transaction, under the member the tasks were started
// with. A newer generation of the same member is taken over inside the transaction (T5).
func (w *Worker) sendOffsets(ctx context.Context, offsets []kafka.CommittedOffset) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.RetryTimeout)
	defer cancel()
	for {
		m := w.cfg.Member()
		if !m.Same(w.cfg.Started) {
			return fmt.Errorf("send offsets: %w: member %q is now %q", ErrLost, w.cfg.Started.ID, m.ID)
		}
		err := w.txn.SendOffsets(ctx, m, offsets)
		if err == nil {
			return nil
		}
		if Decide(kafka.ClassOf(err)) != Retry {
			return fmt.Errorf("send offsets: %w", err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("send offsets: %w", err)
		}
	}
}

// apply brings each task's store to the committed interval, in one batch each.
func apply(iv *interval) (failed error) {
	for _, t := range iv.tasks {
		if err := t.task.store.Commit(t.sealed, t.next(iv.changes)); err != nil {
			if failed == nil { // a store that fails is no reason for the others to be behind
				failed = &Error{Task: t.task.id, Err: fmt.Errorf("apply commit %v: %w", t.progress.ID, err)}
			}
			continue
		}
		t.task.tellCommitted()
		if t.progress.Replaying {
			failpoint.Hit("replay-batch")
		}
		failpoint.Hit("task-applied")
	}
	return failed
}

// next gives the changelog offsets, by store, that the delivery reports tell (T6).
func (t *sealedTask) next(changes *deliveries) map[string]statestore.Offset {
	next := map[string]statestore.Offset{}
	for _, s := range t.task.sub.Stores {
		if offset, ok := changes.offset(t.task.changelog(s.Name)); ok {
			next[s.Name] = statestore.At(offset)
		}
	}
	return next
}

// pause waits; false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
