package franz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// concurrentBackoff is the pause before a request is repeated that the broker answered
// with CONCURRENT_TRANSACTIONS: the markers of the transaction before are being written,
// which takes a few milliseconds.
const concurrentBackoff = 5 * time.Millisecond

// txnState says which calls may follow.
type txnState uint8

const (
	uninitialised txnState = iota // Init
	ready                         // Begin, Init
	inside                        // Send, SendOffsets, Commit, Abort, Init
	failed                        // Abort, Init
	lost                          // Init: fenced, or in doubt
	closed
)

var stateNames = [...]string{"is not initialised", "has no open transaction", "has an open transaction", "has a transaction that can only be aborted",
	"was fenced or is in doubt, and must be initialised", "is closed"}

// transactional is a producer that writes in transactions. It belongs to one goroutine at
// a time.
type transactional struct {
	client   Client
	settings kafka.Settings
	cfg      kafka.TransactionalConfig
	// unavailableAfter bounds the wait for a coordinator in Init.
	unavailableAfter time.Duration

	state txnState
	*sender

	tv2      bool // the cluster fences every transaction by an epoch of its own (KIP-890)
	sent     bool // a record was sent in the open transaction
	offsets  bool // an offset request was sent in the open transaction
	groups   map[string]bool
	topicIDs map[string][16]byte
	routes   map[route]int32 // coordinators
}

// NewTransactional makes a transactional producer, to be initialised before use.
func (c Client) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	const op = "open transactional producer"
	if cfg.ID == "" {
		return nil, invalid(op, "", "TransactionalConfig.ID is empty")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	t := &transactional{client: c, settings: s, cfg: cfg, unavailableAfter: defaultUnavailableAfter,
		topicIDs: make(map[string][16]byte), routes: make(map[route]int32), groups: make(map[string]bool)}
	if err := t.renew(); err != nil {
		return nil, err
	}
	return t, nil
}

// renew makes a fresh franz-go client: it is the only way to make franz-go initialise its
// id again, and drops with certainty whatever the old one still had in hand.
func (t *transactional) renew() error {
	sender, err := t.client.newSender(t.settings, t.cfg.ProducerConfig, "transactional",
		kgo.TransactionalID(t.cfg.ID), kgo.TransactionTimeout(t.cfg.Timeout))
	if err != nil {
		return err
	}
	t.sender = sender
	clear(t.routes)
	return nil
}

// allow refuses a call that the state does not allow.
func (t *transactional) allow(op string, states ...txnState) error {
	if t.state == closed {
		return t.link.call(op).fail(t.cfg.ID, kgo.ErrClientClosed)
	}
	for _, s := range states {
		if t.state == s {
			return nil
		}
	}
	class := kafka.ClassInvalid
	switch t.state {
	case lost:
		class = kafka.ClassInDoubt
	case failed:
		class = kafka.ClassAbortable
	}
	return t.link.call(op).class(class, t.cfg.ID, errors.New("the producer "+stateNames[t.state]))
}

func (t *transactional) Begin() error {
	if err := t.allow("begin transaction", ready); err != nil {
		return err
	}
	if err := t.cl.BeginTransaction(); err != nil {
		t.state = lost
		return t.link.call("begin transaction").fail(t.cfg.ID, err)
	}
	t.state, t.sent, t.offsets = inside, false, false
	clear(t.groups)
	t.reset()
	return nil
}

func (t *transactional) Send(ctx context.Context, records []kafka.Record, report func(kafka.Delivery)) error {
	if err := t.allow("send", inside); err != nil {
		return err
	}
	if len(records) > 0 {
		t.sent = true
	}
	return t.send(ctx, records, report)
}

// Close aborts what is open, as far as the context allows.
func (t *transactional) Close(ctx context.Context) error {
	if t.state == closed {
		return nil
	}
	var err error
	if t.state == inside || t.state == failed {
		err = t.Abort(ctx)
	}
	t.state = closed
	return errors.Join(err, t.shut(ctx, "close transactional producer", false))
}

// current gives producer id and epoch as the client has them now: each committed
// transaction may have brought a new epoch.
func (t *transactional) current(ctx context.Context) (int64, int16, error) {
	id, epoch, err := t.cl.ProducerID(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("producer id: %w", err)
	}
	return id, epoch, nil
}
