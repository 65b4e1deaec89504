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

// defaultUnavailableAfter is how long a broker may answer that there is no coordinator for
// transactions before Init gives up. A new cluster needs a second or two to create its
// transaction log; one that cannot create it answers so for ever.
const defaultUnavailableAfter = 10 * time.Second

// Init obtains the transactional id. The broker ends, before it answers, what the last
// user of the id left open, and refuses that user from then on.
func (t *transactional) Init(ctx context.Context) error {
	const op = "initialise transactions of"
	if err := t.allow(op, uninitialised, ready, inside, failed, lost); err != nil {
		return err
	}
	if t.state != uninitialised {
		t.state = uninitialised
		if err := t.retire(ctx); err != nil {
			return err
		}
	}
	c := t.link.call(op)
	if err := t.initialise(ctx); err != nil {
		// a client whose first attempt failed may hold half an answer
		t.state = lost
		if errors.Is(err, errNoTransactions) {
			return c.class(kafka.ClassTransactionsUnavailable, t.cfg.ID, err)
		}
		return c.fail(t.cfg.ID, err)
	}
	t.state = ready
	return nil
}

// retire ends the client of before. Its records are reported when it returns.
func (t *transactional) retire(ctx context.Context) error {
	t.link.cancel() // nothing it still waits for matters: its epoch is over
	old := t.sender
	if err := t.renew(); err != nil {
		return err
	}
	return old.shut(ctx, "replace the producer of", false)
}

func (t *transactional) initialise(ctx context.Context) error {
	if err := t.awaitCoordinator(ctx); err != nil {
		return err
	}
	if _, err := patiently(ctx, t.link, func() (int64, error) {
		id, _, err := t.current(ctx)
		return id, err
	}); err != nil {
		if errors.Is(err, kerr.CoordinatorNotAvailable) {
			return fmt.Errorf("%w: %w", errNoTransactions, err)
		}
		return err
	}
	tv2, err := transactionVersion(ctx, t.cl)
	t.tv2 = tv2 >= 2
	return err
}

var errNoTransactions = errors.New("the broker has no coordinator for transactions; where the cluster has fewer than three brokers, " +
	"transaction.state.log.replication.factor and transaction.state.log.min.isr must be set to at most their number")

// awaitCoordinator waits until the broker names a coordinator for the transactional id,
// which on a new cluster creates the transaction log.
func (t *transactional) awaitCoordinator(ctx context.Context) error {
	start := time.Now()
	unavailable := false
	for {
		_, err := findCoordinator(ctx, t.cl, coordinatesTransaction, t.cfg.ID)
		if err == nil {
			return nil
		}
		ended := ctx.Err() != nil
		asked := time.Since(start)
		switch {
		case errors.Is(err, kerr.CoordinatorNotAvailable):
			unavailable = true
			ended = ended || asked >= t.unavailableAfter
		case notConnected(err):
			ended = ended || asked >= t.link.patience
		case !again(err):
			ended = true
		}
		if ended || t.link.wait(ctx, 100*time.Millisecond) != nil {
			if unavailable && (ctx.Err() != nil || errors.Is(err, kerr.CoordinatorNotAvailable)) {
				return fmt.Errorf("%w (asked for %v)", errNoTransactions, asked.Round(time.Millisecond))
			}
			return err
		}
	}
}

const (
	coordinatesGroup       = 0
	coordinatesTransaction = 1
)

// findCoordinator asks which broker coordinates a group or a transactional id.
func findCoordinator(ctx context.Context, r kmsg.Requestor, kind int8, key string) (int32, error) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKey = kind, key
	resp, err := req.RequestWith(ctx, r)
	if err != nil {
		return 0, err
	}
	node, code := resp.NodeID, resp.ErrorCode
	for _, c := range resp.Coordinators {
		if c.Key == key {
			node, code = c.NodeID, c.ErrorCode
		}
	}
	return node, kerr.ErrorForCode(code)
}

// again tells whether the same request may be sent again: it did not leave, or its answer
// was "not now".
func again(err error) bool {
	if code := (*kerr.Error)(nil); errors.As(err, &code) {
		return code.Retriable || code == kerr.ConcurrentTransactions
	}
	return errors.Is(err, errNotSent) && transport(err)
}

// transactionVersion gives the cluster's level of the feature "transaction.version".
func transactionVersion(ctx context.Context, cl *kgo.Client) (int16, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "tidemark", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel, nil
		}
	}
	return 0, nil
}
