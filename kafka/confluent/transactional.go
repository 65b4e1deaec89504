//go:build cgo

package confluent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// phase is where a transactional producer stands.
type phase uint8

const (
	unready  phase = iota // only Init or Close
	ready                 // Begin may follow
	open                  // inside a transaction
	spoiled               // inside a transaction that can only be aborted
	finished              // closed
)

func (p phase) String() string {
	return [...]string{"not initialised", "between transactions", "in a transaction", "in a failed transaction", "closed"}[p]
}

// transactional is a transactional producer. librdkafka initialises an instance once, so
// every Init has an instance of its own; the one before is destroyed in the background.
type transactional struct {
	client   Client
	settings kafka.Settings
	cfg      kafka.TransactionalConfig

	*sender           // nil before the first Init
	old     []*sender // retired, perhaps not yet destroyed
	phase   phase
	ended   kafka.ErrorClass    // in the phase unready: how the last transaction ended
	known   map[string]struct{} // topics that the present instance has seen
}

// NewTransactional makes a transactional producer. A DeliveryTimeout above the
// transaction's Timeout counts as that.
func (c Client) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	cfg.ProducerConfig = producerDefaults(cfg.ProducerConfig)
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTxnTimeout
	}
	t := &transactional{client: c, settings: withDefaults(s), cfg: cfg, ended: kafka.ClassInvalid}
	if _, err := c.transactionalConf(t.settings, cfg); err != nil {
		return nil, invalid("make the transactional producer", "%w", err)
	}
	return t, nil
}

// Init makes a new librdkafka instance and initialises it.
func (t *transactional) Init(ctx context.Context) error {
	const op = "initialise transactional id"
	if t.phase == finished {
		return t.wrong(op)
	}
	t.phase, t.ended = unready, kafka.ClassInvalid
	t.retireOld(ctx)
	conf, err := t.client.transactionalConf(t.settings, t.cfg)
	if err != nil {
		return invalid(op, "%w", err)
	}
	n, err := newSender(t.settings, "transactional", t.cfg.MaxBufferedRecords, conf)
	if err != nil {
		return invalid(op, "%w", err)
	}
	t.sender, t.known = n, map[string]struct{}{}
	if _, err := n.metadata(ctx, nil); err != nil {
		return n.wire.late(op, t.cfg.ID, err)
	}
	asked := time.Now()
	answered, err := n.guard(ctx, func(ctx context.Context) error { return resume(ctx, n.p.InitTransactions) })
	if err != nil {
		given := errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(asked) > coordinatorWait
		return t.initFailed(op, answered, given, err)
	}
	t.phase = ready
	return nil
}

// coordinatorWait is how long a broker may look for a coordinator before it is thought
// that it has none to give.
const coordinatorWait = time.Second

// initFailed tells a broker that cannot do transactions from one that is slow: it answers
// (Init has asked it), but names no coordinator in the time given.
func (t *transactional) initFailed(op string, answered, given bool, err error) error {
	var e ck.Error
	if answered && errors.As(err, &e) {
		switch _, class := judge(err); {
		case class == kafka.ClassUnauthorized, class == kafka.ClassFenced:
			return &kafka.Error{Class: class, Op: op, On: t.cfg.ID, Err: err}
		case e.IsFatal():
			return &kafka.Error{Class: classOf(err), Op: op, On: t.cfg.ID, Err: err}
		}
	}
	// A coordinator that has answered stands in the error with its own code.
	silent := !errors.As(err, &e) || e.IsTimeout() || e.Code() == ck.ErrCoordinatorNotAvailable
	if ok, _ := t.wire.reachable(); !ok || !given || !silent {
		return t.wire.late(op, t.cfg.ID, err)
	}
	return &kafka.Error{Class: kafka.ClassTransactionsUnavailable, Op: op, On: t.cfg.ID,
		Err: fmt.Errorf("brokers answer, but none becomes the coordinator of the transactional id; "+
			"can the broker's transaction log be created (transaction.state.log.replication.factor and .min.isr against the number of brokers)? %w", err)}
}

// retireOld begins to destroy the present instance, waits until its records are reported,
// and forgets the instances that are gone.
func (t *transactional) retireOld(ctx context.Context) {
	if t.sender == nil {
		return
	}
	t.retire()
	inTime(ctx, t.settled) // reports depend on no broker
	kept := t.old[:0]
	for _, n := range append(t.old, t.sender) {
		select {
		case <-n.gone:
		default:
			kept = append(kept, n)
		}
	}
	t.old, t.sender = kept, nil
}

// Begin starts a transaction.
func (t *transactional) Begin() error {
	const op = "begin transaction"
	if t.phase != ready {
		return t.wrong(op)
	}
	t.ledger.forgive()
	ctx, cancel := context.WithTimeout(context.Background(), t.settings.RequestTimeout)
	defer cancel()
	p := t.p // a call that is left behind must not see the next instance
	if answered, err := t.guard(ctx, func(context.Context) error { return p.BeginTransaction() }); err != nil {
		return t.spoil(ctx, op, answered, err)
	}
	t.phase = open
	t.mark(true)
	return nil
}

// Send hands records over to the transaction.
func (t *transactional) Send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	switch t.phase {
	case open:
		return t.send(ctx, records, report)
	case spoiled:
		return &kafka.Error{Class: kafka.ClassAbortable, Op: "produce", On: t.cfg.ID,
			Err: errors.New("the transaction has failed and can only be aborted")}
	}
	return t.wrong("produce")
}

// SendOffsets puts offsets into the transaction. The library looks at no time limit when
// the coordinator is away, hence the watchdog; what got no answer is in doubt, because a
// late copy of the request may still arrive.
func (t *transactional) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	const op = "send offsets to transaction"
	switch t.phase {
	case open:
	case spoiled:
		return &kafka.Error{Class: kafka.ClassAbortable, Op: op, On: t.cfg.ID,
			Err: errors.New("the transaction has failed and can only be aborted")}
	default:
		return t.wrong(op)
	}
	native, err := nativeOf(m)
	if err != nil {
		return err
	}
	list, err := offsetList(op, offsets)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := t.know(ctx, op, offsets); err != nil {
		return err
	}
	p := t.p
	answered, err := t.guard(ctx, func(ctx context.Context) error {
		return p.SendOffsetsToTransaction(ctx, list, native)
	})
	if err != nil {
		return t.spoil(ctx, op+" for group "+m.Group+" under", answered, err)
	}
	t.wire.answer()
	return nil
}

// know makes sure that the topics exist. librdkafka repeats an offset commit for an unknown
// topic until the transaction has timed out, and reports that it was fenced. Each topic is
// asked for once in an instance's life.
func (t *transactional) know(ctx context.Context, op string, offsets []kafka.CommittedOffset) error {
	for i := range offsets {
		topic := offsets[i].Topic
		if _, ok := t.known[topic]; ok {
			continue
		}
		md, err := t.metadata(ctx, &topic)
		if err != nil {
			return t.wire.late(op, topic, err)
		}
		found := md.Topics[topic]
		if class := classOf(found.Error); found.Error.Code() != ck.ErrNoError && class != kafka.ClassRetriable {
			t.phase = spoiled
			return &kafka.Error{Class: class, Op: op, On: topic, Err: found.Error}
		}
		t.known[topic] = struct{}{}
	}
	return nil
}

// offsetList translates offsets, and refuses those that librdkafka would leave out.
func offsetList(op string, offsets []kafka.CommittedOffset) ([]ck.TopicPartition, error) {
	list := make([]ck.TopicPartition, len(offsets))
	for i := range offsets {
		o := &offsets[i]
		if o.Offset < 0 {
			return nil, invalid(op, "offset %d of %s", o.Offset, o.TopicPartition)
		}
		if strings.IndexByte(o.Metadata, 0) >= 0 {
			return nil, invalid(op, "metadata of %s contains a zero byte, where librdkafka would end it", o.TopicPartition)
		}
		list[i] = ck.TopicPartition{Topic: &o.Topic, Partition: o.Partition, Offset: ck.Offset(o.Offset), Metadata: &o.Metadata}
	}
	return list, nil
}

// Commit commits. librdkafka waits for the deliveries itself, at once and without linger.
func (t *transactional) Commit(ctx context.Context) error {
	const op = "commit transaction"
	switch t.phase {
	case open, spoiled:
	default:
		return t.wrong(op)
	}
	if err := t.ledger.failure(); err != nil && !dropped(err) || t.phase == spoiled {
		t.phase = spoiled
		if err == nil {
			err = errors.New("the transaction has failed and can only be aborted")
		}
		return &kafka.Error{Class: kafka.ClassAbortable, Op: op, On: t.cfg.ID, Err: err}
	}
	p := t.p
	answered, err := t.guard(ctx, func(ctx context.Context) error { return resume(ctx, p.CommitTransaction) })
	if err != nil {
		err = t.spoil(ctx, op, answered, err)
		if t.phase == spoiled {
			t.reported(ctx) // librdkafka drops the records of a failed transaction at once
			if failure := t.ledger.failure(); failure != nil && !dropped(failure) {
				return &kafka.Error{Class: kafka.ClassAbortable, Op: op, On: t.cfg.ID, Err: failure}
			}
		}
		return err
	}
	t.wire.answer()
	t.phase = ready
	t.mark(false)
	t.reported(ctx)
	return nil
}

// dropped tells whether a delivery failed only because the transaction did: why, librdkafka
// says when it is asked to commit (which it then refuses).
func dropped(failure error) bool { return isCode(failure, ck.ErrPurgeQueue, ck.ErrPurgeInflight) }

// Abort drops the transaction: librdkafka fails what is under way, and the reports come
// before Abort returns.
func (t *transactional) Abort(ctx context.Context) error {
	const op = "abort transaction"
	switch t.phase {
	case open, spoiled:
	default:
		return t.wrong(op)
	}
	t.mark(false)
	p := t.p
	answered, err := t.guard(ctx, func(ctx context.Context) error { return resume(ctx, p.AbortTransaction) })
	if err != nil {
		v, class := judge(err)
		t.giveUp(ctx, class)
		if answered && v == dead && class != kafka.ClassTimeout {
			return &kafka.Error{Class: class, Op: op, On: t.cfg.ID, Err: err}
		}
		return t.wire.late(op, t.cfg.ID, err)
	}
	t.wire.answer()
	t.phase = ready
	t.reported(ctx)
	if t.ledger.tornUp() {
		// librdkafka misses the refused records' sequence numbers: on Kafka 4 the next
		// transaction that writes to their partition would fail ("skipped sequence numbers").
		// The abort has just been accepted, so this fences nobody else.
		return t.Init(ctx)
	}
	return nil
}

// reported waits for the reports of a transaction that has ended. librdkafka ends one only
// when it has handed all of them to the binding, so they are on their way to serve.
func (t *transactional) reported(ctx context.Context) {
	select {
	case <-t.ledger.waitIdle():
	case <-ctx.Done():
	}
}

// giveUp ends an instance that is of no use any more at once: librdkafka goes on trying to
// commit by itself for as long as the instance lives. Its records are reported by then.
func (t *transactional) giveUp(ctx context.Context, class kafka.ErrorClass) {
	t.phase, t.ended = unready, kafka.ClassInvalid
	if class == kafka.ClassInDoubt || class == kafka.ClassFenced {
		t.ended = class
	}
	t.retire()
	inTime(ctx, t.settled) // reports depend on no broker
}

// spoil says what a failed call leaves of the transaction.
func (t *transactional) spoil(ctx context.Context, op string, answered bool, err error) error {
	if answered && isCode(err, ck.ErrState) {
		// The transaction has failed by itself meanwhile; the call's own answer does not say why.
		if why := t.cause(); why != nil {
			err = why
		}
	}
	v, class := judge(err)
	if answered && v == abort {
		t.phase = spoiled
		return &kafka.Error{Class: class, Op: op, On: t.cfg.ID, Err: err}
	}
	if answered && v == dead && class != kafka.ClassTimeout {
		t.giveUp(ctx, class)
		return &kafka.Error{Class: class, Op: op, On: t.cfg.ID, Err: err}
	}
	t.giveUp(ctx, kafka.ClassInDoubt)
	if ok, trouble := t.wire.reachable(); !ok && trouble != "" {
		err = fmt.Errorf("%w (%s)", err, trouble)
	}
	return &kafka.Error{Class: kafka.ClassInDoubt, Op: op, On: t.cfg.ID, Err: fmt.Errorf("no answer: %w", err)}
}

// wrong is the error of a call that is not allowed in this phase. After a transaction that
// is in doubt, or was fenced, it stays that until Init.
func (t *transactional) wrong(op string) error {
	class := kafka.ClassInvalid
	switch t.phase {
	case finished:
		class = kafka.ClassClosed
	case unready:
		class = t.ended
	}
	return &kafka.Error{Class: class, Op: op, On: t.cfg.ID, Err: fmt.Errorf("the producer is %s", t.phase)}
}

// Close ends the producer. An open transaction is left to the broker, which aborts it
// after its timeout or when the id is initialised again.
func (t *transactional) Close(ctx context.Context) error {
	t.phase = finished
	t.retireOld(ctx)
	var errs []error
	for _, n := range t.old {
		errs = append(errs, n.close(ctx, "close the transactional producer", t.cfg.ID))
	}
	t.old = nil
	return errors.Join(errs...)
}
